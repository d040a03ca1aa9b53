package launch

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tree samples all processes of a sandbox from the host's /proc, for hosts
// without a cgroup. Every process descends from init: an orphan becomes init's
// child, and none can leave the PID namespace.
type tree struct{ init int }

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

// cpu sums user and system time of every process and of the children that it
// has waited for; init's own part is left out, its children's is not.
func (t *tree) cpu() (time.Duration, bool) {
	var ticks int64
	for _, pid := range t.processes() {
		ticks += statTicks(pid, 11, 14)
	}
	ticks += statTicks(t.init, 13, 14)
	return time.Duration(ticks) * clockTick, true
}

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

// memory sums the anonymous and shared-memory pages of every process. A page
// that two processes share counts twice: the sample errs to the strict side.
func (t *tree) memory() (int64, bool) {
	var sum int64
	for _, pid := range t.processes() {
		sum += statusKB(pid, "RssAnon:", "RssShmem:") << 10
	}
	return sum, true
}

func statusKB(pid int, fields ...string) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	var sum int64
	for line := range bytes.Lines(status) {
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
