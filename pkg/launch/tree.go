package launch

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tree samples all processes of a sandbox from the host's /proc, for hosts
// without a cgroup. Every process descends from init: an orphan becomes init's
// child, and none can leave the PID namespace.
type tree struct {
	init    int
	last    map[int]spent // at the last sample
	missing time.Duration // seen once and in nobody's figures any more
	shmem   uint64        // the kernel's own mount for memory without a path
}

// spent is the CPU time of one process, and of the children it has waited for.
type spent struct{ own, waited time.Duration }

func newTree(init int) *tree { return &tree{init: init, shmem: shmemDevice()} }

// maxTree bounds one sample; pids are limited far below it.
const maxTree = 1 << 16

// clockTick is USER_HZ, 100 on every Linux architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// processes lists init's descendants, without init itself, and says whether it
// was done in time.
func (t *tree) processes(deadline time.Time) ([]int, bool) {
	list := []int{t.init}
	for i := 0; i < len(list) && len(list) < maxTree; i++ {
		if time.Now().After(deadline) {
			return nil, false
		}
		pid := strconv.Itoa(list[i])
		tasks, err := os.ReadDir("/proc/" + pid + "/task")
		if err != nil {
			continue
		}
		for _, task := range tasks {
			children, err := os.ReadFile("/proc/" + pid + "/task/" + task.Name() + "/children")
			if err != nil {
				continue
			}
			for f := range bytes.FieldsSeq(children) {
				if n, err := strconv.Atoi(string(f)); err == nil {
					list = append(list, n)
				}
			}
		}
	}
	return list[1:], true
}

// cpu sums the CPU time of every process and of the children that it has
// waited for; init's own part is left out, its children's is not. What was seen
// of a process that is gone without anybody having waited for it (its parent
// ignores SIGCHLD) is kept: else a program could burn the CPU in short-lived
// children for nothing.
func (t *tree) cpu(deadline time.Time) (time.Duration, bool) {
	pids, ok := t.processes(deadline)
	if !ok {
		return 0, false
	}
	now := make(map[int]spent, len(pids)+1)
	now[t.init] = spent{waited: waitedFor(t.init)}
	for _, pid := range pids {
		if own, ok := processTime(pid); ok {
			now[pid] = spent{own, waitedFor(pid)}
		}
	}
	var sum, gone, grown time.Duration
	for pid, n := range now {
		sum += n.own + n.waited
		grown += max(n.waited-t.last[pid].waited, 0)
	}
	for pid, l := range t.last {
		if _, ok := now[pid]; !ok {
			gone += l.own + l.waited
		}
	}
	// waited comes in whole ticks, twice: that much may seem to be missing.
	slack := 2 * clockTick * time.Duration(len(now))
	t.missing = max(t.missing+gone-grown, -slack)
	t.last = now
	return sum + max(t.missing, 0), true
}

// processTime is the CPU time of one process, all threads, dead ones included:
// clock_getcpuclockid(3)'s clock, ~PID<<3 | CPUCLOCK_SCHED.
func processTime(pid int) (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// waitedFor is the CPU time of the children that a process has waited for.
func waitedFor(pid int) time.Duration { return time.Duration(statTicks(pid, 13, 14)) * clockTick }

// statTicks sums fields first to last of /proc/PID/stat, counted from the one
// after the command name (proc_pid_stat(5): utime is 11, cstime is 14).
func statTicks(pid, first, last int) int64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name may hold spaces and parentheses: only what follows the last one counts.
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0
	}
	var sum int64
	n := 0
	for f := range bytes.FieldsSeq(stat[i+1:]) {
		if n >= first && n <= last {
			v, _ := strconv.ParseInt(string(f), 10, 64)
			sum += v
		}
		n++
	}
	return sum
}
