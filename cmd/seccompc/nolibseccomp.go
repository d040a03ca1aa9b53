//go:build !libseccomp || !cgo

package main

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/profile"
)

func errNoLibseccomp() error {
	return refusal.Newf("seccompc was built without libseccomp").
		Hint("apt-get install libseccomp-dev gcc pkg-config").
		Hint("CGO_ENABLED=1 go build -tags libseccomp ./cmd/seccompc")
}

func knownToLibseccomp(arch, name string) (bool, error) { return false, errNoLibseccomp() }

func libseccompBody(arch string, fallback profile.Action, calls []call) ([]bpfvm.Insn, error) {
	return nil, errNoLibseccomp()
}
