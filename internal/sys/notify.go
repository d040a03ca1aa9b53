package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Notification is struct seccomp_notif: a call that waits for the listener of
// its filter (seccomp_unotify(2), Linux 5.0).
type Notification struct {
	ID    uint64
	PID   uint32 // of the thread, as the reader's own PID namespace numbers it
	Flags uint32
	Nr    uint32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// ReceiveNotification takes the next call that waits. ENOENT: it was gone again.
func ReceiveNotification(listener int, n *Notification) error {
	*n = Notification{} // the kernel refuses a buffer that is not zero
	return notifyIoctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
}

// RefuseNotification makes the call fail with errno; with zero it returns zero.
// Either way it is not made.
func RefuseNotification(listener int, id uint64, errno unix.Errno) error {
	return notifyIoctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{id: id, error: -int32(errno)}))
}

// ContinueNotification lets the kernel make the call. Its registers are those of
// the notification; memory that they point to may be another's by then, so it is
// no answer for a call that anything but its registers decides about.
func ContinueNotification(listener int, id uint64) error {
	return notifyIoctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND,
		unsafe.Pointer(&response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}))
}

// NotificationValid says whether the thread still waits in that call: only then
// was what /proc said of its PID about it, and not about a later one's.
func NotificationValid(listener int, id uint64) bool {
	return notifyIoctl(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

func notifyIoctl(listener int, request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), request, uintptr(arg))
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

// SeccompListener appends the installation of a filter with a listener, whose
// descriptor Start puts into Program.Listener. killable is WaitKillable.
func (c *Calls) SeccompListener(name string, bpf []byte, killable bool) {
	c.Seccomp(name, bpf)
	k := &c.list[len(c.list)-1]
	k.Listener = true
	k.Args[1] = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	if killable {
		k.Args[1] |= unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
}

// WaitKillable says whether this kernel can keep signals from interrupting a
// call that the listener has taken (Linux 5.19): else the call begins anew, and
// is counted anew. A filter at address zero is EFAULT when the flags are known.
func WaitKillable() bool {
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0)
	return e == unix.EFAULT
}
