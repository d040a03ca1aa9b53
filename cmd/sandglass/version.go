package main

import (
	"fmt"
	"runtime"
)

// version is set by the linker: -X main.version=…
var version = "dev"

func versionCommand([]string) int {
	fmt.Printf("sandglass %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return 0
}
