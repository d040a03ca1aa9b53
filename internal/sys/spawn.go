package sys

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSpawn is a clone whose child runs spawned on a stack of its own. c escapes
// on purpose: the child outlives the call, and must find it in its place.
func rawSpawn(nr, a1, a2, a3 uintptr, c *child) (pid, errno uintptr)

// spawnStack is the child's stack: it makes system calls, and no more.
const spawnStack = 32 << 10

// Spawn is Start for a process in new namespaces (flags), which can do nothing
// before prepare has mapped its ids: prepare is called with its PID while it
// waits, and what it says ends the process. One that is started AtOnce does not
// wait, and is not waited for before prepare is done: its PID stays its own.
//
// The memory is shared until execve as in Start, but this thread goes on. A
// fork would copy the page tables, and every page that the caller writes to
// meanwhile: for an embedder with a large heap that is most of a run.
func Spawn(p *Program, flags uintptr, prepare func(pid int) error) (pid, pidfd int, err error) {
	var hold, gone [2]int // the child reads hold; gone ends with its execve
	if err := unix.Pipe2(hold[:], unix.O_CLOEXEC); err != nil {
		return 0, -1, err
	}
	if err := unix.Pipe2(gone[:], unix.O_CLOEXEC); err != nil {
		closePair(hold)
		return 0, -1, err
	}
	c, err := newChild(p)
	if err != nil {
		closePair(hold)
		closePair(gone)
		return 0, -1, err
	}
	c.own = make([]byte, spawnStack)
	c.calls = append(c.waitFor(hold, append([]int{gone[1]}, p.Keep...)), c.calls...)
	keep.enter()
	defer keep.leave()
	err = ownedBy(p.Owner, func() error {
		pid, pidfd, err = c.clone(flags, p.Cgroup)
		return err
	})
	unix.Close(hold[0])
	unix.Close(gone[1])
	switch {
	case err == nil:
		err = release(pid, pidfd, c, hold[1], gone[0], p.AtOnce, prepare)
	case pid > 0: // this thread could not become itself again
		unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		reap(pid, pidfd)
	}
	unix.Close(hold[1])
	unix.Close(gone[0])
	runtime.KeepAlive(c)
	runtime.KeepAlive(p)
	if err != nil {
		return 0, -1, err
	}
	return pid, pidfd, nil
}

// dumpable keeps this process's own attribute: it belongs to the memory, which
// the child shares when it changes its user, and the kernel takes it away then
// (PR_SET_DUMPABLE of prctl(2)).
type dumpable struct {
	mu    sync.Mutex
	users int
	was   int
}

var keep dumpable

func (d *dumpable) enter() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users == 0 {
		d.was, _ = unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	}
	d.users++
}

func (d *dumpable) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
	if d.users == 0 && d.was == 1 {
		unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}
}

func closePair(p [2]int) {
	unix.Close(p[0])
	unix.Close(p[1])
}

// waitFor is the calls with which the child waits for one byte. At end of file
// it goes on without ids, and fails at the next call that needs one.
//
// First it lets go of every descriptor that it does not need. Two children of
// one caller at the same time would otherwise each hold the other's hold open,
// and when the caller is killed wait for ever, with the locks of its runs.
func (c *child) waitFor(hold [2]int, keep []int) []Call {
	w := &Calls{}
	w.closeAllBut(append(keep, hold[0]))
	w.Add("wait for the ids", unix.SYS_READ, uintptr(hold[0]), uintptr(unsafe.Pointer(&c.byte)), 1)
	return w.list
}

// closeAllBut appends closing every descriptor but stdio and these.
func (c *Calls) closeAllBut(keep []int) {
	slices.Sort(keep)
	first := 3
	for _, fd := range keep {
		if fd > first {
			c.Add("close descriptors", unix.SYS_CLOSE_RANGE, uintptr(first), uintptr(fd-1), 0)
		}
		first = max(first, fd+1)
	}
	c.Add("close descriptors", unix.SYS_CLOSE_RANGE, uintptr(first), uintptr(^uint32(0)), 0)
}

// release lets the child go, before it is prepared or after, and waits for its
// execve or its end.
func release(pid, pidfd int, c *child, hold, gone int, atOnce bool, prepare func(int) error) (err error) {
	if atOnce {
		err = writeByte(hold)
	}
	if err == nil {
		err = prepare(pid)
	}
	if err == nil && !atOnce {
		err = writeByte(hold)
	}
	if err != nil {
		unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}
	var b [1]byte
	for {
		if _, e := unix.Read(gone, b[:]); e != unix.EINTR {
			break
		}
	}
	if err == nil && c.errno == 0 {
		return nil
	}
	if c.errno != 0 { // it also says more than that the child took no byte
		se := &StartError{Call: "execve", Errno: unix.Errno(c.errno)}
		if c.failed < len(c.calls) {
			se.Call = c.calls[c.failed].Name
		}
		err = se
	}
	unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	reap(pid, pidfd)
	return err
}

func writeByte(fd int) error {
	for {
		if _, err := unix.Write(fd, []byte{1}); err != unix.EINTR {
			return err
		}
	}
}

// clone clones with every signal blocked, so that no Go signal handler ever
// runs in the child. The child unblocks them last, see Program.Calls.
func (c *child) clone(flags uintptr, cgroup int) (pid, pidfd int, err error) {
	restore, err := BlockSignals()
	if err != nil {
		return 0, -1, err
	}
	c.pidfd = -1
	flags |= unix.CLONE_VM | unix.CLONE_PIDFD
	fd := uintptr(unsafe.Pointer(&c.pidfd))
	// The stack begins below some room for what a frame keeps above itself.
	base := uintptr(unsafe.Pointer(unsafe.SliceData(c.own)))
	top := (base + spawnStack - 64) &^ 15
	var r, e uintptr
	if cgroup >= 0 {
		c.args = cloneArgs{
			flags: uint64(flags | unix.CLONE_INTO_CGROUP), pidfd: uint64(fd), exitSignal: uint64(unix.SIGCHLD),
			stack: uint64(base), stackSize: uint64(top - base), cgroup: uint64(cgroup),
		}
		r, e = rawSpawn(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&c.args)), unsafe.Sizeof(c.args), 0, c)
	} else {
		// Not clone3, which container runtimes' filters answer with ENOSYS.
		r, e = rawSpawn(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), top, fd, c)
	}
	restore()
	if e != 0 {
		return 0, -1, &StartError{Call: "clone", Errno: unix.Errno(e)}
	}
	return int(r), int(c.pidfd), nil
}

// spawned is the child.
//
//lint:ignore U1000 the assembly calls it
//go:norace
//go:nosplit
func spawned(c *child) { runChild(c) }
