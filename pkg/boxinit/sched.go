package boxinit

import (
	"os"

	"golang.org/x/sys/unix"
)

// Numbers of ioprio_set(2).
const (
	ioprioProcess  = 1 // IOPRIO_WHO_PROCESS
	ioprioClassRT  = 1
	ioprioShift    = 13
	oomScoreAdj    = "/proc/self/oom_score_adj"
	schedDeadline  = 6
	ordinaryOOMAdj = "0"
)

// ordinaryPriority gives up what the caller has over other programs of the
// host, for the program would inherit it: a real-time policy is outside the CPU
// limit of a cgroup and starves the host, and with a negative oom_score_adj
// (a service of systemd's can have one) the out-of-memory killer passes the
// program by and ends its neighbours. What is below the ordinary stays. It
// stands before init hides: its own files in /proc are root's from then on.
func ordinaryPriority(*box) error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	realTime := attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR || attr.Policy == schedDeadline
	if realTime {
		// The kernel keeps a nice value for the day when the policy ends, and tells
		// it only here, as 20 - nice; a lower one would need a capability.
		kept, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			return err
		}
		*attr = unix.SchedAttr{Size: attr.Size, Policy: unix.SCHED_NORMAL, Nice: int32(20 - kept)}
	}
	if realTime || attr.Nice < 0 {
		attr.Nice = max(attr.Nice, 0)
		if err := unix.SchedSetAttr(0, attr, 0); err != nil {
			return err
		}
	}
	prio, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, ioprioProcess, 0, 0)
	if errno != 0 && errno != unix.ENOSYS { // a kernel without block devices
		return errno
	}
	if errno == 0 && prio>>ioprioShift == ioprioClassRT {
		if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, 0, 0); errno != 0 {
			return errno
		}
	}
	return ordinaryOOM()
}

func ordinaryOOM() error {
	fd, err := unix.Open(oomScoreAdj, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var first [1]byte
	_, err = unix.Read(fd, first[:])
	unix.Close(fd)
	if err != nil || first[0] != '-' {
		return err
	}
	return os.WriteFile(oomScoreAdj, []byte(ordinaryOOMAdj), 0)
}
