// Command sandglass runs code that a model wrote in a fresh native sandbox.
package main

import (
	"os"

	"sandglass/pkg/check"
	"sandglass/pkg/sandbox"
)

func main() {
	sandbox.Init()
	check.Init()
	os.Exit(dispatch(os.Args[1:]))
}
