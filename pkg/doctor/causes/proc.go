package causes

import (
	"os"
	"strconv"

	"sandglass/internal/refusal"
)

// Proc refuses a host without a /proc of this process's own PID namespace. By
// one of another the supervisor would map ids for, read back and watch whatever
// process has the sandbox's number there, and none of it would be the sandbox's.
func Proc() error {
	if e := here().proc(os.Getpid()); e != nil {
		return e
	}
	return nil
}

func (h host) proc(pid int) *refusal.Error {
	self, err := os.Readlink(h.root + "/proc/self")
	switch {
	case err != nil:
		return refusal.Newf("no /proc is mounted that shows this process, and without it no sandbox can be set up or looked at").
			Hint("mount -t proc proc /proc   # as root")
	case self != strconv.Itoa(pid):
		return refusal.Newf("/proc is of another PID namespace: process %d is %s there, and other processes have the numbers of the sandbox's", pid, refusal.Word(self)).
			Hint("mount -t proc proc /proc   # as root, in this namespace; unshare(1) does it with --mount-proc")
	}
	return nil
}
