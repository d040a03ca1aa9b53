package sys

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// allThreads makes one system call on every thread of the process.
func allThreads(nr, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, errno syscall.Errno) {
	return syscall.AllThreadsSyscall6(nr, a1, a2, a3, a4, a5, a6)
}

// SetIDs gives every thread of this process one user and group, and no
// supplementary groups. The kernel clears the parent-death signal with it, and
// the attribute that the process may be traced.
func SetIDs(uid, gid int) error {
	u, g := uintptr(uid), uintptr(gid)
	for _, call := range [...][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, g, g, g}, {unix.SYS_SETRESUID, u, u, u}} {
		if _, _, e := allThreads(call[0], call[1], call[2], call[3], 0, 0, 0); e != 0 {
			return e
		}
	}
	return nil
}
