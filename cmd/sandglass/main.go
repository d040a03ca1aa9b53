// Command sandglass runs code that a model wrote in a fresh native sandbox.
package main

import (
	"os"

	"sandglass/pkg/check"
	"sandglass/pkg/doctor"
	"sandglass/pkg/sandbox"
)

func main() {
	sandbox.Init()
	guardInit()
	// Before the command line is read: it names files that would be opened.
	if err := sandbox.CheckCaller(); err != nil {
		os.Exit(failOn(plain(2), err))
	}
	check.Init()
	doctor.Init()
	os.Exit(dispatch(os.Args[1:]))
}
