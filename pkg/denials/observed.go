package denials

import (
	"runtime"

	"sandglass/internal/sys"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/sysnum"

	"golang.org/x/sys/unix"
)

// name is where a call has a path: the number of its argument, and of the one
// with the directory that a relative one begins at, -1 for the working directory.
type name struct{ dir, path int }

// observed is a call that is allowed, and that the report wants to hear of,
// because what it asks for may fail in the kernel, behind the filter.
type observed struct {
	call  string
	flags int    // number of the argument with the flags of open(2), -1 for none
	names []name // that are made, removed or written to; none of connect
}

// writing are the flags by which open(2) may change something.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// observedCalls are connect and what writes by a path. openat2 has its flags in
// memory, which a filter cannot read, and few programs use it.
var observedCalls = []observed{
	{"connect", -1, nil},
	{"creat", -1, []name{{-1, 0}}},
	{"mkdir", -1, []name{{-1, 0}}}, {"mkdirat", -1, []name{{0, 1}}},
	{"mknod", -1, []name{{-1, 0}}}, {"mknodat", -1, []name{{0, 1}}},
	{"rmdir", -1, []name{{-1, 0}}}, {"unlink", -1, []name{{-1, 0}}}, {"unlinkat", -1, []name{{0, 1}}},
	{"rename", -1, []name{{-1, 0}, {-1, 1}}},
	{"renameat", -1, []name{{0, 1}, {2, 3}}}, {"renameat2", -1, []name{{0, 1}, {2, 3}}},
	{"link", -1, []name{{-1, 1}}}, {"linkat", -1, []name{{2, 3}}},
	{"symlink", -1, []name{{-1, 1}}}, {"symlinkat", -1, []name{{1, 2}}},
	{"truncate", -1, []name{{-1, 0}}},
	{"open", 1, []name{{-1, 0}}}, {"openat", 2, []name{{0, 1}}},
}

// observing asks the listener about these calls and leaves all others to next.
// Those with flags come last: what does not ask goes on behind them.
func observing(next []bpfvm.Insn) []bpfvm.Insn {
	var blocks []bpfvm.Insn
	for _, o := range observedCalls {
		number, ok := sysnum.Number(runtime.GOARCH, o.call)
		switch {
		case !ok: // arm64 has no open, mkdir and so on
		case o.flags < 0:
			blocks = append(blocks, bpfvm.Insn{Code: bpfvm.JeqK, K: number, JF: 1}, bpfvm.Insn{Code: bpfvm.RetK, K: retNotify})
		default:
			blocks = append(blocks,
				bpfvm.Insn{Code: bpfvm.LdAbs, K: 0},
				bpfvm.Insn{Code: bpfvm.JeqK, K: number, JF: 3},
				bpfvm.Insn{Code: bpfvm.LdAbs, K: uint32(16 + 8*o.flags)}, // the lower half of args[flags]
				bpfvm.Insn{Code: bpfvm.JsetK, K: writing, JF: 1},
				bpfvm.Insn{Code: bpfvm.RetK, K: retNotify})
		}
	}
	prog := []bpfvm.Insn{
		{Code: bpfvm.LdAbs, K: 4},
		// Skips what is not ours: the filter itself kills foreign architectures.
		{Code: bpfvm.JeqK, K: auditArch(), JF: uint8(1 + len(blocks))},
		{Code: bpfvm.LdAbs, K: 0},
	}
	return append(append(prog, blocks...), next...)
}

// allowed notes what a call that the profile allows will meet. Whatever of it is
// in the caller's memory may change before the kernel reads it: a program can hide
// something so, and gains nothing.
func (w *Watch) allowed(n *sys.Notification) {
	switch o := w.observed[n.Nr]; {
	case o == nil:
	case o.names == nil:
		w.connects(n)
	case o.flags < 0 || n.Args[o.flags]&writing != 0:
		w.writes(n, o)
	}
}

// observedByNumber has those that this architecture has: one who learns is told
// of every call, and most are none of them.
func observedByNumber() map[uint32]*observed {
	calls := map[uint32]*observed{}
	for i := range observedCalls {
		if number, ok := sysnum.Number(runtime.GOARCH, observedCalls[i].call); ok {
			calls[number] = &observedCalls[i]
		}
	}
	return calls
}
