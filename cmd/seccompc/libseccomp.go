//go:build libseccomp && cgo

package main

import (
	"fmt"
	"io"
	"os"

	libseccomp "github.com/seccomp/libseccomp-golang"

	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
)

// binaryTree makes libseccomp search the number instead of comparing one after
// the other: the kernel installs such a filter in half the time.
const binaryTree = 2

var libArch = map[string]libseccomp.ScmpArch{"amd64": libseccomp.ArchAMD64, "arm64": libseccomp.ArchARM64}

var libOp = map[profile.Op]libseccomp.ScmpCompareOp{
	profile.NE:       libseccomp.CompareNotEqual,
	profile.LT:       libseccomp.CompareLess,
	profile.LE:       libseccomp.CompareLessOrEqual,
	profile.EQ:       libseccomp.CompareEqual,
	profile.GE:       libseccomp.CompareGreaterEqual,
	profile.GT:       libseccomp.CompareGreater,
	profile.MaskedEQ: libseccomp.CompareMaskedEqual,
}

func libAction(a profile.Action) libseccomp.ScmpAction {
	switch a.Kind {
	case profile.Allow:
		return libseccomp.ActAllow
	case profile.Log:
		return libseccomp.ActLog
	case profile.Errno:
		return libseccomp.ActErrno.SetReturnCode(int16(a.Errno))
	}
	return libseccomp.ActKillProcess
}

// knownToLibseccomp says whether libseccomp has the call, and refuses to go on
// when its number is not ours: one of the two tables is wrong then.
func knownToLibseccomp(arch, name string) (bool, error) {
	theirs, err := libseccomp.GetSyscallFromNameByArch(name, libArch[arch])
	if err != nil || theirs < 0 {
		return false, nil
	}
	ours, _ := sysnum.Number(arch, name)
	if uint32(theirs) != ours {
		return false, fmt.Errorf("%s on %s is %d for libseccomp and %d in our table", name, arch, theirs, ours)
	}
	return true, nil
}

// libseccompBody compiles one part.
func libseccompBody(arch string, fallback profile.Action, calls []call) ([]bpfvm.Insn, error) {
	filter, err := newFilter(arch, fallback)
	if err != nil {
		return nil, err
	}
	defer filter.Release()
	for _, c := range calls {
		if err := addCall(filter, fallback, c); err != nil {
			return nil, fmt.Errorf("libseccomp: %s: %w", c.name, err)
		}
	}
	raw, err := export(filter)
	if err != nil {
		return nil, err
	}
	return bpfvm.Decode(raw)
}

// newFilter is an empty filter for one architecture.
func newFilter(arch string, fallback profile.Action) (*libseccomp.ScmpFilter, error) {
	filter, err := libseccomp.NewFilter(libAction(fallback))
	if err != nil {
		return nil, err
	}
	native, err := libseccomp.GetNativeArch()
	if err != nil {
		return nil, err
	}
	if native != libArch[arch] {
		if err := filter.AddArch(libArch[arch]); err != nil {
			return nil, err
		}
		if err := filter.RemoveArch(native); err != nil {
			return nil, err
		}
	}
	if err := filter.SetBadArchAction(libseccomp.ActKillProcess); err != nil {
		return nil, err
	}
	return filter, filter.SetOptimize(binaryTree)
}

func addCall(filter *libseccomp.ScmpFilter, fallback profile.Action, c call) error {
	// By this machine's number or libseccomp's placeholder: it translates.
	number, err := libseccomp.GetSyscallFromName(c.name)
	if err != nil {
		return err
	}
	for _, r := range c.rules {
		if r.Action == fallback {
			continue // libseccomp refuses a rule that changes nothing
		}
		var conditions []libseccomp.ScmpCondition
		for _, a := range r.Args {
			values := []uint64{a.Value}
			if a.Op == profile.MaskedEQ {
				values = append(values, a.ValueTwo)
			}
			condition, err := libseccomp.MakeCondition(a.Index, libOp[a.Op], values...)
			if err != nil {
				return err
			}
			conditions = append(conditions, condition)
		}
		if len(conditions) == 0 {
			err = filter.AddRuleExact(number, libAction(r.Action))
		} else {
			err = filter.AddRuleConditionalExact(number, libAction(r.Action), conditions)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// export reads the compiled program through a pipe, drained while libseccomp
// writes: a pipe holds less than the largest program. (ExportBPFMem needs
// libseccomp 2.6.)
func export(filter *libseccomp.ScmpFilter) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	done := make(chan error, 1)
	go func() {
		defer w.Close()
		done <- filter.ExportBPF(w)
	}()
	raw, err := io.ReadAll(r)
	if exportErr := <-done; exportErr != nil {
		return nil, fmt.Errorf("libseccomp: export: %w", exportErr)
	}
	return raw, err
}
