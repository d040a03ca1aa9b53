package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// childInfo is siginfo_t as waitid(2) fills it for a child.
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
	_                     [108]byte
}

// WaitAny blocks until any child has ended, and leaves it a zombie.
func WaitAny() (pid int, err error) {
	var info childInfo
	_, _, e := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(info.pid), nil
}
