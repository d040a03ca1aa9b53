package sys

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownedBy calls f with owner as this thread's effective user, its capabilities
// kept: a user namespace that f makes belongs to owner.
//
// What is used up in a user namespace (inotify instances and watches, POSIX
// timers and queued signals, message queues, namespaces) is charged to its
// owner's account in the namespace above as well (kernel/ucount.c). With root
// as the owner one sandbox takes all that root of the host and every other
// sandbox may have.
func ownedBy(owner int, f func() error) error {
	own := os.Geteuid()
	if owner == 0 || owner == own {
		return f()
	}
	runtime.LockOSThread()
	// The caller's own cord, which the kernel cuts at a change of ids (prctl(2)).
	var death int32
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&death)), 0, 0, 0); err != nil {
		return err
	}
	if err := becomeOwner(owner); err != nil {
		return err // the thread stays locked, and ends with its goroutine
	}
	err := f()
	// The kernel gives root its capabilities back with the id.
	if e := setEffectiveUser(own); e != nil {
		return e
	}
	if e := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(death), 0, 0, 0); e != nil {
		return e
	}
	runtime.UnlockOSThread()
	return err
}

func becomeOwner(owner int) error {
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{}
	if _, _, e := unix.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)), 0); e != 0 {
		return e
	}
	if err := setEffectiveUser(owner); err != nil {
		return err
	}
	// The change took the effective ones: a host may want CAP_SYS_ADMIN for a
	// new user namespace.
	if _, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)), 0); e != 0 {
		return e
	}
	return nil
}

// setEffectiveUser is for this thread alone, which Go's own Setresuid is not.
func setEffectiveUser(id int) error {
	keep := ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(id), keep); e != 0 {
		return e
	}
	return nil
}
