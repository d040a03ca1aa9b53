package launch

import (
	"bytes"
	"iter"
	"os"
	"strconv"
	"time"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// tree samples all processes of a sandbox from the host's /proc, for hosts
// without a cgroup. Every process descends from init: an orphan becomes init's
// child, and none can leave the PID namespace.
type tree struct {
	init    int
	last    map[int]spent // at the last sample
	missing time.Duration // seen once and in nobody's figures any more
	shmem   uint64        // the kernel's own mount for memory without a path, where memory is watched
	nice    int           // of a crowd
	owned   *sys.Owned    // the sandbox's user namespace, nil where its id is the caller's
	host
}

// host is what the kernel counts for the whole host alone.
type host struct {
	slabs    int64  // the least that there were since the start
	udp, tcp growth // pages to be read
}

// spent is the CPU time of one process, and of the children it has waited for.
type spent struct{ own, waited time.Duration }

func newTree(init int) *tree { return &tree{init: init} }

// process is one of a sample. Its first thread may have ended while others run
// on: the kernel then has neither memory nor descriptors to show for it, only
// for those.
type process struct {
	pid, parent int
	tasks       []int
}

// maxTree bounds one sample; pids are limited far below it.
const maxTree = 1 << 16

// clockTick is USER_HZ, 100 on every Linux architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// blind says why the tree cannot be looked at, while init is certainly there:
// without it a kernel that has no list of children, or a /proc that hides init,
// would look like a sandbox that holds nothing.
func (t *tree) blind(file string) error {
	pid := strconv.Itoa(t.init)
	f, err := os.Open("/proc/" + pid + "/task/" + pid + "/" + file)
	if err != nil {
		return err
	}
	return f.Close()
}

// processes lists init's descendants, without init itself, and says whether it
// was done in time.
func (t *tree) processes(l *look) ([]process, bool) {
	list := []process{{pid: t.init}}
	for i := 0; i < len(list) && len(list) < maxTree; i++ {
		if l.over() {
			return nil, false
		}
		pid := list[i].pid
		list[i].tasks = tasksOf(pid)
		for _, task := range list[i].tasks {
			for _, child := range childrenOf(pid, task) {
				list = append(list, process{pid: child, parent: pid})
			}
		}
	}
	return list[1:], true
}

// tasksOf lists a process's threads, the first one first.
func tasksOf(pid int) []int {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// tables is a thread for each table of descriptors: threads can have one of
// their own (clone(2) without CLONE_FILES).
func (p *process) tables(l *look) iter.Seq[int] {
	return func(yield func(task int) bool) {
		looked := 0
		for _, task := range p.tasks {
			if looked != 0 && l.same(looked, task, kcmpFiles) {
				continue
			}
			if !yield(task) {
				return
			}
			looked = task
		}
	}
}

// childrenOf lists what one thread has started and what was left to it.
func childrenOf(pid, task int) []int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(task) + "/children")
	if err != nil {
		return nil
	}
	var list []int
	for f := range bytes.FieldsSeq(text) {
		if n, err := strconv.Atoi(string(f)); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// cpu sums the CPU time of every process and of the children that it has
// waited for; init's own part is left out, its children's is not. What was seen
// of a process that is gone without anybody having waited for it (its parent
// ignores SIGCHLD) is kept: else a program could burn the CPU in short-lived
// children for nothing.
func (t *tree) cpu(l *look) (time.Duration, bool) {
	list, ok := t.processes(l)
	if !ok {
		return 0, false
	}
	now := make(map[int]spent, len(list)+1)
	now[t.init] = spent{waited: waitedFor(t.init)}
	for _, p := range list {
		if own, ok := processTime(p.pid); ok {
			now[p.pid] = spent{own, waitedFor(p.pid)}
		}
	}
	var sum, gone, grown time.Duration
	for pid, n := range now {
		sum += n.own + n.waited
		grown += max(n.waited-t.last[pid].waited, 0)
	}
	for pid, last := range t.last {
		if _, ok := now[pid]; !ok {
			gone += last.own + last.waited
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

// statTicks sums fields first to last of a process's stat.
func statTicks(pid, first, last int) int64 {
	stat, err := statOf("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return 0
	}
	var sum int64
	for i := first; i <= last && i < len(stat); i++ {
		sum += number(stat[i], 10)
	}
	return sum
}

// statOf is the fields of /proc/PID/stat, counted from the one after the command
// name (proc_pid_stat(5): the flags are 6, utime is 11, cstime is 14).
func statOf(proc string) ([][]byte, error) {
	stat, err := readProc(proc + "/stat")
	if err != nil {
		return nil, err
	}
	// The name may hold spaces and parentheses: only what follows the last one counts.
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]), nil
}
