package seccomp

import (
	"runtime"

	"sandglass/pkg/seccomp/bpfvm"

	"golang.org/x/sys/unix"
)

// The words of struct seccomp_data that a filter loads.
const (
	dataNr   = 0
	dataArch = 4
)

// And is bpf, a filter for the architecture of this binary, which allows one call
// more whatever its arguments are.
//
// It is for an init that waits for what to run, and is confined before it knows:
// it looks for that by openat2, which alone can refuse a link of /proc's
// (CVE-2019-5736) and keep below a directory. The program never has this filter.
func And(nr uint32, bpf []byte) []byte {
	first := bpfvm.Encode([]bpfvm.Insn{
		{Code: bpfvm.LdAbs, K: dataArch},
		{Code: bpfvm.JeqK, JF: 3, K: arches[runtime.GOARCH].token},
		{Code: bpfvm.LdAbs, K: dataNr},
		{Code: bpfvm.JeqK, JF: 1, K: nr},
		{Code: bpfvm.RetK, K: retAllow},
	})
	return append(first, bpf...)
}

// MayWait says whether a program's process that has this filter can wait for what
// to execute.
func (f *Filter) MayWait() bool {
	prog, err := bpfvm.Decode(f.BPF)
	return err == nil && allows(prog, arches[runtime.GOARCH].token, unix.SYS_FUTEX)
}
