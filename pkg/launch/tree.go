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
}

// spent is the CPU time of one process, and of the children it has waited for.
type spent struct{ own, waited time.Duration }

func newTree(init int) *tree { return &tree{init: init} }

// maxTree bounds one sample; pids are limited far below it.
const maxTree = 1 << 16

// clockTick is USER_HZ, 100 on every Linux architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// processes lists init's descendants, without init itself.
func (t *tree) processes() []int {
	list := []int{t.init}
	for i := 0; i < len(list) && len(list) < maxTree; i++ {
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
	return list[1:]
}

// cpu sums the CPU time of every process and of the children that it has
// waited for; init's own part is left out, its children's is not. What was seen
// of a process that is gone without anybody having waited for it (its parent
// ignores SIGCHLD) is kept: else a program could burn the CPU in short-lived
// children for nothing.
func (t *tree) cpu() time.Duration {
	pids := t.processes()
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
	return sum + max(t.missing, 0)
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

// memory is what all processes and the scratch hold. The quick sum counts a
// page once for each process that shares it; only when that is above limit is
// the exact one taken, for which the kernel walks the page tables. Files of the
// scratch that are mapped count twice even then.
func (t *tree) memory(limit int64) int64 {
	sum := t.scratch()
	for _, pid := range t.processes() {
		sum += resident(pid)
	}
	if sum <= limit {
		return sum
	}
	// While processes that share pages end, the last ones hold them alone: one
	// pass may count a page several times. Two in a row hardly do.
	return min(t.exact(), t.exact())
}

// exact counts a page that n processes share as the n-th part for each.
func (t *tree) exact() int64 {
	sum := t.scratch()
	for _, pid := range t.processes() {
		kb := kilobytes(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
		if kb < 0 { // it has ended, or is not to be read: no way out of the limit
			sum += resident(pid)
			continue
		}
		sum += kb << 10
	}
	return sum
}

func resident(pid int) int64 { return max(kilobytes(pid, "status", "RssAnon:", "RssShmem:"), 0) << 10 }

// scratch is what the sandbox's own tmpfs holds, whose places are all one file
// system. /tmp is a mount point of ours that the program cannot replace.
func (t *tree) scratch() int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs("/proc/"+strconv.Itoa(t.init)+"/root/tmp", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return 0
	}
	return int64(fs.Blocks-fs.Bfree) * fs.Bsize
}

// kilobytes sums fields of a file of the form "Name:  N kB"; -1 when it cannot
// be read.
func kilobytes(pid int, file string, fields ...string) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return -1
	}
	var sum int64
	for line := range bytes.Lines(text) {
		for _, f := range fields {
			value, ok := bytes.CutPrefix(line, []byte(f))
			if !ok {
				continue
			}
			if kb := bytes.Fields(value); len(kb) > 0 {
				n, _ := strconv.ParseInt(string(kb[0]), 10, 64)
				sum += n
			}
		}
	}
	return sum
}
