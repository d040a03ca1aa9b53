package sys

import (
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Owned is a user namespace that this process's user owns, with
// ids that are not that user's. By its methods one may look at what belongs to
// these ids: files of 0600 that a program left, the descriptors of a process; and
// change a name in a directory of theirs.
//
// The owner of a namespace has every capability in it, but must be in it to use
// them on files, and a process with several threads cannot enter. So each method
// makes a process that enters, makes a few calls in this one's memory and table
// of descriptors, and ends: nothing is executed and nothing is left.
type Owned struct{ fd int }

// OwnUserNamespace opens the user namespace of a process.
func OwnUserNamespace(pid int) (*Owned, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/ns/user"
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Owned{fd}, nil
}

// Close lets go of the namespace, which ends with its last descriptor.
func (ns *Owned) Close() { unix.Close(ns.fd) }

// visit is what such a process reads and writes. It and all that its calls point
// to live on the heap, for stacks move.
type visit struct {
	ns    uintptr
	calls []visitCall
	errno uintptr // of entering
}

type visitCall struct{ nr, a1, a2, a3, a4, a5, result, errno uintptr }

// Open is openat2.
func (ns *Owned) Open(dir int, path string, how *unix.OpenHow) (int, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	h := new(unix.OpenHow)
	*h = *how
	v := &visit{calls: []visitCall{{
		nr: unix.SYS_OPENAT2, a1: uintptr(dir), a2: uintptr(unsafe.Pointer(name)),
		a3: uintptr(unsafe.Pointer(h)), a4: unsafe.Sizeof(*h),
	}}}
	err = ns.visit(v)
	runtime.KeepAlive(name)
	runtime.KeepAlive(h)
	if err != nil {
		return -1, err
	}
	if e := v.calls[0].errno; e != 0 {
		return -1, unix.Errno(e)
	}
	return int(v.calls[0].result), nil
}

// Stat looks at names in dir, all in one visit, and follows links. What cannot be
// looked at has no Mask.
func (ns *Owned) Stat(dir int, names []string) ([]unix.Statx_t, error) {
	found := make([]unix.Statx_t, len(names))
	v := &visit{calls: make([]visitCall, len(names))}
	paths := make([]*byte, len(names))
	for i, name := range names {
		p, err := unix.BytePtrFromString(name)
		if err != nil {
			return nil, err
		}
		paths[i] = p
		v.calls[i] = visitCall{
			nr: unix.SYS_STATX, a1: uintptr(dir), a2: uintptr(unsafe.Pointer(p)), a3: unix.AT_NO_AUTOMOUNT,
			a4: unix.STATX_BASIC_STATS, a5: uintptr(unsafe.Pointer(&found[i])),
		}
	}
	err := ns.visit(v)
	runtime.KeepAlive(paths)
	runtime.KeepAlive(found)
	return found, err
}

// Rename is renameat2 within one directory.
func (ns *Owned) Rename(dir int, from, to string) error {
	a, err := unix.BytePtrFromString(from)
	if err != nil {
		return err
	}
	b, err := unix.BytePtrFromString(to)
	if err != nil {
		return err
	}
	v := &visit{calls: []visitCall{{
		nr: unix.SYS_RENAMEAT2, a1: uintptr(dir), a2: uintptr(unsafe.Pointer(a)), a3: uintptr(dir), a4: uintptr(unsafe.Pointer(b)),
	}}}
	err = ns.visit(v)
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	if err == nil && v.calls[0].errno != 0 {
		err = unix.Errno(v.calls[0].errno)
	}
	return err
}

// Readlink reads a link of at most size bytes.
func (ns *Owned) Readlink(path string, size int) (string, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return "", err
	}
	at := unix.AT_FDCWD
	text, err := ns.read(visitCall{nr: unix.SYS_READLINKAT, a1: uintptr(at), a2: uintptr(unsafe.Pointer(name))}, size)
	runtime.KeepAlive(name)
	return text, err
}

// Getxattr reads an attribute, of at most size bytes, of what a path leads to.
func (ns *Owned) Getxattr(path, attr string, size int) (string, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return "", err
	}
	a, err := unix.BytePtrFromString(attr)
	if err != nil {
		return "", err
	}
	text, err := ns.read(visitCall{nr: unix.SYS_GETXATTR, a1: uintptr(unsafe.Pointer(name)), a2: uintptr(unsafe.Pointer(a))}, size)
	runtime.KeepAlive(name)
	runtime.KeepAlive(a)
	return text, err
}

// read makes a call whose third and fourth arguments are a buffer and its size,
// and whose result is how much of it was filled.
func (ns *Owned) read(c visitCall, size int) (string, error) {
	buf := make([]byte, size)
	c.a3, c.a4 = uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(size)
	v := &visit{calls: []visitCall{c}}
	err := ns.visit(v)
	runtime.KeepAlive(buf)
	if err != nil {
		return "", err
	}
	if e := v.calls[0].errno; e != 0 {
		return "", unix.Errno(e)
	}
	return string(buf[:v.calls[0].result]), nil
}

// visit makes the process and waits for its end. Every signal is blocked, so
// that no Go signal handler ever runs in it.
func (ns *Owned) visit(v *visit) error {
	v.ns = uintptr(ns.fd)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore, err := BlockSignals()
	if err != nil {
		return err
	}
	pid, e := cloneVisitor(v)
	restore()
	if e != 0 {
		return &StartError{Call: "clone", Errno: unix.Errno(e)}
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(int(pid), &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	if v.errno != 0 {
		return &StartError{Call: "setns", Errno: unix.Errno(v.errno)}
	}
	if status.Signaled() { // among its calls: some have no answer
		return unix.ECANCELED
	}
	return nil
}

// cloneVisitor is cloneChild for a visit. As there nothing may grow the stack,
// allocate or call into the runtime in the child.
//
//go:norace
//go:noinline
//go:nosplit
func cloneVisitor(v *visit) (pid, errno uintptr) {
	flags := unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | uintptr(unix.SIGCHLD)
	pid, errno = rawVfork(unix.SYS_CLONE, flags, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	runVisit(v)
	return 0, 0
}

//go:norace
//go:noinline
//go:nosplit
func runVisit(v *visit) {
	_, _, e := unix.RawSyscall(unix.SYS_SETNS, v.ns, unix.CLONE_NEWUSER, 0)
	if e != 0 {
		v.errno = uintptr(e)
		exitChild()
	}
	for i := 0; i < len(v.calls); i++ {
		c := &v.calls[i]
		r, _, e := unix.RawSyscall6(c.nr, c.a1, c.a2, c.a3, c.a4, c.a5, 0)
		c.result, c.errno = r, uintptr(e)
	}
	exitChild()
}
