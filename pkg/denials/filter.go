package denials

import (
	"errors"
	"runtime"

	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/sysnum"
)

// What a filter can answer, from linux/seccomp.h.
const (
	actionMask = 0xffff0000
	errnoMask  = 0x0000ffff
	retErrno   = 0x00050000
	retNotify  = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
	retLog     = 0x7ffc0000
	retAllow   = 0x7fff0000
)

// auditArch is the architecture word of this binary's own calls.
func auditArch() uint32 { return sysnum.AuditArch(runtime.GOARCH) }

var (
	errComputed = errors.New("this filter computes what it returns, so nobody can tell what it would have refused")
	errTooLong  = errors.New("with what tells about denials the filter is longer than the kernel takes")
)

// explaining is base with every refusal turned into a question to the listener,
// and the calls that are observed as well. What else base allows costs what it
// did, and what it kills the kernel still kills. An errno of zero is no refusal
// and stays.
func explaining(base []bpfvm.Insn) ([]bpfvm.Insn, error) {
	asking, err := ask(base, func(k uint32) bool { return k&actionMask == retErrno && k&errnoMask != 0 })
	if err != nil {
		return nil, err
	}
	return fits(observing(asking))
}

// learning asks about every call that base allows or refuses, but for those that
// start the program and end a process: the listener is not there yet at the
// first execve. Those base decides alone.
func learning(base []bpfvm.Insn) ([]bpfvm.Insn, error) {
	asking, err := ask(base, func(k uint32) bool {
		action := k & actionMask
		return action == retErrno || action == retAllow || action == retLog
	})
	if err != nil {
		return nil, err
	}
	prog := []bpfvm.Insn{
		{Code: bpfvm.LdAbs, K: 4},
		{Code: bpfvm.JeqK, K: auditArch(), JF: uint8(2 + len(Unasked()))},
		{Code: bpfvm.LdAbs, K: 0},
	}
	for i, name := range Unasked() {
		number, _ := sysnum.Number(runtime.GOARCH, name)
		prog = append(prog, bpfvm.Insn{Code: bpfvm.JeqK, K: number, JT: uint8(len(Unasked()) - i)})
	}
	// The asking filter begins after this jump, the one that decides alone after it.
	prog = append(prog, bpfvm.Insn{Code: bpfvm.Ja, K: 1}, bpfvm.Insn{Code: bpfvm.Ja, K: uint32(len(asking))})
	return fits(append(append(prog, asking...), base...))
}

// Unasked are the calls that a learning filter does not ask about: whoever learns
// takes them as used.
func Unasked() []string { return []string{"execve", "exit_group"} }

// ask turns the returns that which names into retNotify.
func ask(base []bpfvm.Insn, which func(uint32) bool) ([]bpfvm.Insn, error) {
	asking := make([]bpfvm.Insn, len(base))
	for i, in := range base {
		if in.Code == bpfvm.RetA {
			return nil, errComputed
		}
		if in.Code == bpfvm.RetK && which(in.K) {
			in.K = retNotify
		}
		asking[i] = in
	}
	return asking, nil
}

func fits(prog []bpfvm.Insn) ([]bpfvm.Insn, error) {
	if len(prog) > bpfvm.MaxInsns {
		return nil, errTooLong
	}
	return prog, nil
}
