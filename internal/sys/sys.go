// Package sys holds the system calls and numbers that golang.org/x/sys/unix
// lacks. It is the only package with unsafe and with assembly, so that an audit
// of either ends here.
package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Exec starts the program: see Call and Program.
//
// A Call is one raw system call that the new process makes between its clone
// and its execve. The list is data: it is built, named, ordered and tested
// before the clone, so the code that runs in the child is one short loop.
type Call struct {
	Name string
	Nr   uintptr
	Args [6]uintptr
	// Ignore lists an errno that is no failure (0: none).
	Ignore unix.Errno
	// Listener: the call's result is the descriptor that Program.Listener becomes.
	Listener bool
}

// Calls collects a child's system calls and keeps alive what they point to.
type Calls struct {
	list []Call
	keep []any
}

// Add appends a call whose arguments hold no pointers.
func (c *Calls) Add(name string, nr uintptr, args ...uintptr) {
	k := Call{Name: name, Nr: nr}
	copy(k.Args[:], args)
	c.list = append(c.list, k)
}

// Tolerate makes errno no failure of the call added last.
func (c *Calls) Tolerate(errno unix.Errno) { c.list[len(c.list)-1].Ignore = errno }

// Names lists the calls in order, runs of one name once.
func (c *Calls) Names() []string {
	var names []string
	for _, k := range c.list {
		if len(names) == 0 || names[len(names)-1] != k.Name {
			names = append(names, k.Name)
		}
	}
	return names
}

// Write appends write(fd, data).
func (c *Calls) Write(name string, fd int, data []byte) {
	c.keep = append(c.keep, data)
	c.Add(name, unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
}

// Rlimit appends prlimit64 of the child itself.
func (c *Calls) Rlimit(name string, resource int, soft, hard uint64) {
	r := &unix.Rlimit{Cur: soft, Max: hard}
	c.keep = append(c.keep, r)
	c.Add(name, unix.SYS_PRLIMIT64, 0, uintptr(resource), uintptr(unsafe.Pointer(r)), 0)
}

// sigaction is struct kernel_sigaction on amd64 and arm64.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// DefaultSignals appends calls that give every signal its default disposition.
// execve resets handlers only; what the caller ignored (nohup's SIGHUP, Go's
// SIGPIPE) would stay ignored in the program.
func (c *Calls) DefaultSignals(name string) {
	act := &sigaction{}
	c.keep = append(c.keep, act)
	for sig := 1; sig <= 64; sig++ {
		if sig == int(unix.SIGKILL) || sig == int(unix.SIGSTOP) {
			continue
		}
		c.Add(name, unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)), 0, 8)
	}
}

// perThread is the signal by which Go's runtime makes a system call on every
// thread (sigPerThreadSyscall, SIGRTMIN+1 of the kernel's own numbers).
const perThread = 33

// IgnoreSignals has this process ignore every signal, but for the one that
// ClearAllCaps needs: a stray one of those does nothing. SIGCHLD has its default,
// which is to be ignored as well, and right for a parent that waits.
func IgnoreSignals() error {
	for sig := 1; sig <= 64; sig++ {
		handler := sigIgn
		switch unix.Signal(sig) {
		case unix.SIGKILL, unix.SIGSTOP, perThread:
			continue
		case unix.SIGCHLD:
			handler = sigDfl
		}
		if err := dispose(sig, handler); err != nil {
			return err
		}
	}
	return nil
}

// IgnorePerThread does it for the one that was left, when no call is to be made
// on every thread any more: its handler would run for each that is sent from
// inside, on time that no limit counts.
func IgnorePerThread() error { return dispose(perThread, sigIgn) }

// DefaultSignal gives a signal of this process its default disposition.
func DefaultSignal(sig unix.Signal) error { return dispose(int(sig), sigDfl) }

const sigDfl, sigIgn = uintptr(0), uintptr(1) // SIG_DFL, SIG_IGN

func dispose(sig int, handler uintptr) error {
	act := sigaction{handler: handler}
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// SignalMask appends setting the blocked set.
func (c *Calls) SignalMask(name string, mask uint64) {
	m := &mask
	c.keep = append(c.keep, m)
	c.Add(name, unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(m)), 0, 8)
}

// ClearCaps appends a capset(2) that empties effective, permitted and inheritable.
func (c *Calls) ClearCaps(name string) {
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{}
	c.keep = append(c.keep, hdr, data)
	c.Add(name, unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)))
}

// SetCaps appends a capset(2) that makes all three sets caps, of the first 32.
func (c *Calls) SetCaps(name string, caps uint32) {
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{{Effective: caps, Permitted: caps, Inheritable: caps}}
	c.keep = append(c.keep, hdr, data)
	c.Add(name, unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)))
}

// Affinity appends a sched_setaffinity(2) of the calling thread.
func (c *Calls) Affinity(name string, set []byte) {
	c.keep = append(c.keep, set)
	c.Add(name, unix.SYS_SCHED_SETAFFINITY, 0, uintptr(len(set)), uintptr(unsafe.Pointer(unsafe.SliceData(set))))
}

// Seccomp appends the installation of one classic BPF filter.
func (c *Calls) Seccomp(name string, bpf []byte) {
	prog := &unix.SockFprog{
		Len:    uint16(len(bpf) / int(unsafe.Sizeof(unix.SockFilter{}))),
		Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(bpf))),
	}
	c.keep = append(c.keep, bpf, prog)
	c.Add(name, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(prog)))
}

// CanReachThreads says whether ClearAllCaps would come to an end: it sends each
// thread a signal and waits for all, and a signal that the kernel does not queue
// (EAGAIN: RLIMIT_SIGPENDING of the user is used up) would be waited for for ever.
func CanReachThreads() error { return unix.Tgkill(unix.Getpid(), unix.Gettid(), perThread) }

// ClearAllCaps empties the capability sets of every thread of this process:
// Linux keeps them per thread, and a Go process has several before main starts.
// The kernel empties the ambient set with them (capabilities(7)). On this
// thread it sets no_new_privs, which SeccompAllThreads passes on to the others.
func ClearAllCaps() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{}
	_, _, e := allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)), 0, 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// SeccompAllThreads installs a filter on every thread of this process, and
// no_new_privs with it (SECCOMP_FILTER_FLAG_TSYNC of seccomp(2)).
func SeccompAllThreads(bpf []byte) error {
	prog := &unix.SockFprog{
		Len:    uint16(len(bpf) / int(unsafe.Sizeof(unix.SockFilter{}))),
		Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(bpf))),
	}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(prog)))
	if e != 0 {
		return e
	}
	return nil
}

// LoopbackUp brings lo up in the current network namespace.
func LoopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var ifr struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(ifr.name[:], "lo")
	ifr.flags = unix.IFF_UP | unix.IFF_RUNNING
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&ifr)))
	if e != 0 {
		return e
	}
	return nil
}
