//go:build !sandglass_warm

package main

import "sandglass/pkg/sandbox"

// runSpec is how run runs a Spec.
var runSpec = sandbox.Run
