package sys

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawVfork is a clone whose child may share this memory and stack.
//
//go:noescape
func rawVfork(nr, a1, a2, a3 uintptr) (r1, errno uintptr)

// Program is a process to start: Calls are made in it in order, then execve is
// tried on each of Paths as execvp(3) does.
type Program struct {
	Calls *Calls
	Paths []string
	Argv  []string
	Env   []string
	// Cgroup is a cgroup v2 directory to clone into (Linux 5.7), -1 for none.
	Cgroup int
	// Keep lists the descriptors that Calls use: of Spawn alone, whose child
	// closes the others before it waits.
	Keep []int
	// AtOnce is of Spawn alone: the process does not wait for what prepare does.
	AtOnce bool
	// Owner is the user that a new user namespace belongs to, 0 for the caller:
	// of Spawn alone, see ownedBy.
	Owner int
	// ShareFiles is of Start alone: the process works in this one's table of
	// descriptors until its execve gives it a copy of its own.
	ShareFiles bool
	// Listener is what Start found, see SeccompListener.
	Listener int
}

// StartError says which call of the child failed.
type StartError struct {
	Call  string // name of the Call, or "clone", or "execve"
	Path  string // of execve
	Errno unix.Errno
}

func (e *StartError) Error() string { return e.Call + ": " + e.Errno.Error() }
func (e *StartError) Unwrap() error { return e.Errno }

// cloneArgs is struct clone_args up to CLONE_ARGS_SIZE_VER2.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// child is what the new process reads and writes. It lives on the heap; the
// child shares it (CLONE_VM), so a failure needs no pipe.
type child struct {
	calls  []Call
	paths  []*byte
	argv   **byte
	env    **byte
	failed int // index into calls, of the one under way; len(calls) is execve
	path   int
	errno  uintptr
	listen uintptr // result of the call that has Listener

	// Of StartWaiting alone.
	waits bool
	state uint32
	names []string // of paths

	// Of Spawn and StartWaiting alone: they must not lie on a stack that moves.
	own   []byte // the child's stack
	args  cloneArgs
	pidfd int32
	byte  [1]byte
}

// Start makes the process and returns its PID and a pidfd. The clone is
// CLONE_VM|CLONE_VFORK: no page table is copied, and this thread sleeps until
// the child has called execve or is gone. Call it with the thread locked and
// every signal blocked on it, so that no Go signal handler ever runs in the
// child.
func Start(p *Program) (pid, pidfd int, err error) {
	c, err := newChild(p)
	if err != nil {
		return 0, -1, err
	}
	fd := int32(-1)
	extra := uintptr(0)
	if p.ShareFiles {
		extra = unix.CLONE_FILES
	}
	r, e := cloneChild(c, p.Cgroup, extra, &fd)
	runtime.KeepAlive(p)
	if e != 0 {
		return 0, -1, &StartError{Call: "clone", Errno: unix.Errno(e)}
	}
	if c.errno == 0 && c.failed < len(c.calls) {
		// Killed among its calls. Nothing was executed, and whoever looks at what
		// is left of the child would find controls missing in a program.
		c.errno = uintptr(unix.ECANCELED)
	}
	if c.errno != 0 {
		reap(int(r), int(fd))
		se := &StartError{Call: "execve", Errno: unix.Errno(c.errno)}
		if c.failed < len(c.calls) {
			se.Call = c.calls[c.failed].Name
		} else if c.path < len(p.Paths) {
			se.Path = p.Paths[c.path]
		}
		return 0, -1, se
	}
	p.Listener = int(c.listen)
	return int(r), int(fd), nil
}

func newChild(p *Program) (*child, error) {
	c := &child{calls: p.Calls.list}
	return c, c.execute(p.Paths, p.Argv, p.Env)
}

// execute sets what is executed.
func (c *child) execute(paths, argv, env []string) (err error) {
	c.names, c.paths = paths, nil
	for _, s := range paths {
		b, err := unix.BytePtrFromString(s)
		if err != nil {
			return err
		}
		c.paths = append(c.paths, b)
	}
	if c.argv, err = stringArray(argv); err != nil {
		return err
	}
	c.env, err = stringArray(env)
	return err
}

func stringArray(list []string) (**byte, error) {
	ptrs := make([]*byte, len(list)+1)
	for i, s := range list {
		b, err := unix.BytePtrFromString(s)
		if err != nil {
			return nil, err
		}
		ptrs[i] = b
	}
	return unsafe.SliceData(ptrs), nil
}

func reap(pid, pidfd int) {
	unix.Close(pidfd)
	for {
		_, err := unix.Wait4(pid, nil, 0, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// cloneChild clones and, in the child, runs it. Nothing here may grow the
// stack, allocate or call into the runtime: the child has no Go scheduler.
//
//go:norace
//go:noinline
//go:nosplit
func cloneChild(c *child, cgroup int, extra uintptr, pidfd *int32) (pid, errno uintptr) {
	flags := unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | extra
	if cgroup >= 0 {
		args := cloneArgs{
			flags:      uint64(flags) | unix.CLONE_INTO_CGROUP,
			pidfd:      uint64(uintptr(unsafe.Pointer(pidfd))),
			exitSignal: uint64(unix.SIGCHLD),
			cgroup:     uint64(cgroup),
		}
		pid, errno = rawVfork(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	} else {
		// The third argument is where clone(2) puts the pidfd.
		pid, errno = rawVfork(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, uintptr(unsafe.Pointer(pidfd)))
	}
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	runChild(c)
	return 0, 0
}

// runChild makes the calls, then execve; it never returns.
//
//go:norace
//go:noinline
//go:nosplit
func runChild(c *child) {
	for i := 0; i < len(c.calls); i++ {
		k := &c.calls[i]
		c.failed = i
		r, _, e := unix.RawSyscall6(k.Nr, k.Args[0], k.Args[1], k.Args[2], k.Args[3], k.Args[4], k.Args[5])
		if e != 0 && e != k.Ignore {
			c.errno = uintptr(e)
			exitChild()
		}
		if k.Listener {
			c.listen = r
		}
	}
	c.failed = len(c.calls)
	if c.waits {
		waitChild(c)
	}
	execChild(c)
	exitChild()
}

// execChild tries each path as execvp(3) does: a missing one is passed over,
// and EACCES is remembered, for a later path may do.
//
//go:norace
//go:noinline
//go:nosplit
func execChild(c *child) {
	last, denied, deniedAt := uintptr(unix.ENOENT), uintptr(0), 0
	for i := 0; i < len(c.paths); i++ {
		_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.paths[i])), uintptr(unsafe.Pointer(c.argv)), uintptr(unsafe.Pointer(c.env)))
		last = uintptr(e)
		c.path = i
		if e == unix.EACCES {
			denied, deniedAt = last, i
		} else if e != unix.ENOENT && e != unix.ENOTDIR {
			break
		}
	}
	if denied != 0 && (last == uintptr(unix.ENOENT) || last == uintptr(unix.ENOTDIR)) {
		last, c.path = denied, deniedAt
	}
	c.errno = last
}

//go:norace
//go:noinline
//go:nosplit
func exitChild() {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}
