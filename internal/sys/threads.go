package sys

import "syscall"

// allThreads makes one system call on every thread of the process.
func allThreads(nr, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, errno syscall.Errno) {
	return syscall.AllThreadsSyscall6(nr, a1, a2, a3, a4, a5, a6)
}
