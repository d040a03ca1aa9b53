// Command sandglass runs code that a model wrote in a fresh native sandbox.
package main

import (
	"os"

	"sandglass/pkg/sandbox"
)

func main() {
	sandbox.Init()
	os.Exit(dispatch(os.Args[1:]))
}
