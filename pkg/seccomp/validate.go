package seccomp

import (
	"fmt"
	"runtime"

	"sandglass/pkg/seccomp/bpfvm"
)

// What a filter can answer, from linux/seccomp.h.
const (
	retActionFull = 0xffff0000
	retLog        = 0x7ffc0000
	retAllow      = 0x7fff0000
)

// x32Bit marks the numbers of the x32 interface, which share the architecture
// word with amd64.
const x32Bit = 1 << 30

// arch is what Validate must know of an architecture.
type arch struct {
	token                    uint32 // AUDIT_ARCH_*
	write, execve, exitGroup uint32
}

var arches = map[string]arch{
	"amd64": {token: 0xc000003e, write: 1, execve: 59, exitGroup: 231},
	"arm64": {token: 0xc00000b7, write: 64, execve: 221, exitGroup: 94},
}

// foreign are the architecture words of the other interfaces that Linux
// kernels offer to programs: i386, arm, riscv64, riscv32, ppc, ppc64,
// ppc64le, s390, s390x, mips and mips64 in both byte orders, loongarch64, and
// zero and all ones, which are none.
var foreign = []uint32{
	0xc000003e, 0xc00000b7, 0x40000003, 0x40000028, 0xc00000f3, 0x400000f3, 0x00000014, 0x80000015,
	0xc0000015, 0x00000016, 0x80000016, 0x00000008, 0x40000008, 0x80000008, 0xc0000008, 0xc0000102,
	0, 0xffffffff,
}

const (
	highestProbed  = 511 // above every number that exists
	unknownSyscall = 0xfffe
)

// Validate says whether bpf is a filter that the kernel accepts and that
// confines a program of this binary's architecture, see ValidateFor.
func Validate(bpf []byte) error { return ValidateFor(runtime.GOARCH, bpf) }

// ValidateFor checks a filter for goarch, "amd64" or "arm64". First the
// kernel's own rules. Then, by running it: write, execve and exit_group are
// allowed, because init's child makes them with the filter on; a call number
// that no kernel has is not, which tells an allow-list from a deny-list; and
// nothing is allowed through a foreign architecture or x32, where the same
// numbers are other calls.
func ValidateFor(goarch string, bpf []byte) error {
	native, ok := arches[goarch]
	if !ok {
		return fmt.Errorf("no filters for architecture %s", goarch)
	}
	prog, err := bpfvm.Decode(bpf)
	if err != nil {
		return err
	}
	if err := bpfvm.Check(prog); err != nil {
		return err
	}
	if err := checkNeeded(prog, native); err != nil {
		return err
	}
	if allows(prog, native.token, unknownSyscall) {
		return fmt.Errorf("allows the unknown system call %#x: not an allow-list", unknownSyscall)
	}
	return checkForeign(prog, native)
}

func checkNeeded(prog []bpfvm.Insn, native arch) error {
	needed := []struct {
		name   string
		number uint32
	}{{"write", native.write}, {"execve", native.execve}, {"exit_group", native.exitGroup}}
	for _, n := range needed {
		if !allows(prog, native.token, n.number) {
			return fmt.Errorf("does not allow %s, without which no program can be started", n.name)
		}
	}
	return nil
}

func checkForeign(prog []bpfvm.Insn, native arch) error {
	for _, token := range foreign {
		if token == native.token {
			continue
		}
		for nr := range uint32(highestProbed + 1) {
			if allows(prog, token, nr) {
				return fmt.Errorf("allows system call %d of the foreign architecture %#x: the architecture is not checked", nr, token)
			}
		}
	}
	if native.token != arches["amd64"].token {
		return nil
	}
	for nr := range uint32(highestProbed + 1) {
		if allows(prog, native.token, nr|x32Bit) {
			return fmt.Errorf("allows system call %d through x32", nr)
		}
	}
	return nil
}

// allows says whether a call with zero arguments would be made. A log action
// is made as well.
func allows(prog []bpfvm.Insn, token, nr uint32) bool {
	ret, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: token})
	action := ret & retActionFull
	return err == nil && (action == retAllow || action == retLog)
}
