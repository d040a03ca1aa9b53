package sys

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Waiting is a process that has made all of its calls and waits for what it is to
// execute. It shares this memory until then.
type Waiting struct{ c *child }

// Places of a child that waits, in child.state. Both sides wait for a change of it.
const (
	working = iota // makes its calls
	waits          // for Exec
	goes           // executes
)

// The operations of futex(2), private: among those who share this memory.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// nameOfWait is the Call of a StartError where the waiting was refused.
const nameOfWait = "wait for the release"

// startedEvery is how often one that makes its calls is looked at whether it has
// ended. Its word that it waits comes at once.
const startedEvery = 50 * time.Millisecond

// StartWaiting is Start but for the execve, which Exec is told later: Paths, Argv
// and Env do not count. When it returns, each of the calls was made, the filter
// with them, which must allow futex(2). The process has no descriptor for the
// waiting and asks nobody.
func StartWaiting(p *Program) (w *Waiting, pid, pidfd int, err error) {
	c := &child{calls: p.Calls.list, waits: true, own: make([]byte, spawnStack)}
	if pid, pidfd, err = c.clone(0, p.Cgroup); err != nil {
		return nil, 0, -1, err
	}
	for c.load() == working && !ended(pidfd) {
		futex(&c.state, futexWait, working, startedEvery)
	}
	if c.load() == working {
		reap(pid, pidfd)
		if c.errno == 0 {
			c.errno = uintptr(unix.ECANCELED) // see Start
		}
		return nil, 0, -1, c.failure()
	}
	runtime.KeepAlive(p) // the calls point into it
	return &Waiting{c}, pid, pidfd, nil
}

// Exec has it execute the first of paths that can be. It does not wait for that.
func (w *Waiting) Exec(paths, argv, env []string) error {
	if err := w.c.execute(paths, argv, env); err != nil {
		return err
	}
	atomic.StoreUint32(&w.c.state, goes)
	futex(&w.c.state, futexWake, 1, 0)
	return nil
}

// Failure is for one that has ended, and been waited for: why nothing was
// executed, nil when something was. No program can write it: the memory that it
// shared was gone before its first instruction.
func (w *Waiting) Failure() error {
	if w.c.errno == 0 {
		return nil
	}
	return w.c.failure()
}

func (c *child) failure() *StartError {
	e := &StartError{Call: "execve", Errno: unix.Errno(c.errno)}
	switch {
	case c.failed < len(c.calls):
		e.Call = c.calls[c.failed].Name
	case c.load() != goes:
		e.Call = nameOfWait
	case c.path < len(c.names):
		e.Path = c.names[c.path]
	}
	return e
}

func (c *child) load() uint32 { return atomic.LoadUint32(&c.state) }

func ended(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// futex waits or wakes; why a wait has ended is for the caller to see.
func futex(word *uint32, op int, value uint32, most time.Duration) {
	t := unix.NsecToTimespec(int64(most))
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), uintptr(op), uintptr(value), uintptr(unsafe.Pointer(&t)), 0, 0)
}

// waitChild tells that it waits, and waits. As with runChild, nothing here may
// need Go's runtime.
//
//go:norace
//go:noinline
//go:nosplit
func waitChild(c *child) {
	word := uintptr(unsafe.Pointer(&c.state))
	atomic.StoreUint32(&c.state, waits)
	unix.RawSyscall(unix.SYS_FUTEX, word, futexWake, 1)
	for atomic.LoadUint32(&c.state) == waits {
		_, _, e := unix.RawSyscall6(unix.SYS_FUTEX, word, futexWait, waits, 0, 0, 0)
		if e != 0 && e != unix.EAGAIN && e != unix.EINTR {
			c.errno = uintptr(e) // the filter does not allow it
			exitChild()
		}
	}
}
