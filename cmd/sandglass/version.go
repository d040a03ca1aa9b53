package main

import (
	"fmt"
	"runtime"

	"sandglass/internal/refusal"
)

// version is set by the linker: -X main.version=…
var version = "dev"

func versionCommand(args []string) int {
	switch {
	case len(args) == 0:
		return emit(fmt.Sprintf("sandglass %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version()))
	case args[0] == "-h" || args[0] == "--help":
		return emit(usage("version"))
	}
	return fail(refusal.Newf("version: unknown argument %q", args[0]).Hint("sandglass version"))
}
