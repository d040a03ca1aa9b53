package leftovers

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/hostid"
	"sandglass/pkg/result"
)

//go:embed testdata/view.c
var viewSource string

// setup is a run whose set-up has one of everything: a mount, and with root the
// id mapping for it; a list of hosts. Its program says how it is confined.
type setup struct {
	who  testkit.Who
	args []string
	view string // what the program says when nothing fails
	res  result.Result
}

func newSetup(t *testing.T, who testkit.Who) *setup {
	s := &setup{who: who, args: []string{"--timeout", "60s", "--allow-host", "127.0.0.1:9", "-v", testkit.C(t, viewSource) + ":" + testkit.Inside, "--", testkit.Inside}}
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		link, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		s.args = append(s.args, link)
	}
	o := testkit.Run(t, testkit.Opts{Who: who}, s.args...)
	if o.Exit != 0 || !strings.HasSuffix(o.Stdout, "\nend\n") || strings.Contains(o.Stdout, "HOST") {
		t.Fatalf("without a fault: exit %d\n%s%s", o.Exit, o.Stdout, o.Stderr)
	}
	s.view, s.res = o.Stdout, o.Result
	return s
}

// tracedRun is one under the tracer, in progress.
type tracedRun struct {
	*testkit.Process
	point
	report *os.File
}

// start runs it under the tracer.
func (s *setup) start(t *testing.T, p point, o order) *tracedRun {
	t.Helper()
	report, err := os.CreateTemp("", "traced-")
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(report.Name())
	o.Key, o.N = p.key, p.n
	return &tracedRun{point: p, report: report, Process: testkit.Start(t, testkit.Opts{Who: s.who, Files: []*os.File{report}, Setup: func(cmd *exec.Cmd) {
		o.Args, o.UID = append([]string{cmd.Path}, cmd.Args[1:]...), s.who.UID
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = "/proc/self/exe", []string{"tracer"}
		cmd.Env = append(cmd.Env, envTrace+"="+string(raw))
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}}, s.args...)}
}

// end waits for it.
func (r *tracedRun) end(t *testing.T) (testkit.Output, traced) {
	t.Helper()
	o := r.Wait()
	defer r.report.Close()
	var tr traced
	text, err := io.ReadAll(io.NewSectionReader(r.report, 0, 64<<20))
	if err == nil {
		err = json.Unmarshal(text, &tr)
	}
	if err != nil {
		t.Fatalf("the tracer's report: %v\n%s", err, o.Stderr)
	}
	return o, tr
}

// point is one call of the set-up: the nth with this key.
type point struct {
	key string
	n   int
}

func (p point) String() string { return fmt.Sprintf("%s (%d)", p.key, p.n) }

// envAll asks for every call of a run, and for more errors than one. Without it
// only the first and the last of those with one key fail, and no call of the
// supervisor's that only looks for something that may be missing.
const envAll = "SANDGLASS_FAULTS"

var lookups = regexp.MustCompile("^supervisor (newfstatat|fstat|faccessat2?|readlinkat|getdents64|statfs|fstatfs|fcntl|getcwd|ioctl|pread64|getrlimit) ?")

// points are the calls of a run.
func (s *setup) points(t *testing.T) []point {
	o, tr := s.start(t, point{}, order{}).end(t)
	if o.Exit != 0 || o.Stdout != s.view {
		t.Fatalf("traced: exit %d, %s\n%s", o.Exit, o.Stderr, o.Stdout)
	}
	total, count := map[string]int{}, map[string]int{}
	for _, key := range tr.Calls {
		total[key]++
	}
	var list []point
	for _, key := range tr.Calls {
		count[key]++
		n := count[key]
		last := n == total[key] && s.who.IsRoot()
		if os.Getenv(envAll) != "" || (n == 1 || last) && !lookups.MatchString(key) {
			list = append(list, point{key, n})
		}
	}
	if len(list) < 100 {
		t.Fatalf("only %d calls were seen", len(list))
	}
	return list
}

// atOnce is how many runs go on at the same time; what is left is looked for
// after them.
const atOnce = 4

// batches runs points under the tracer, some at a time, and looks for what is
// left after each batch.
func (s *setup) batches(t *testing.T, points []point, o order, each func(r *tracedRun, o testkit.Output), after func(supervisors []int)) {
	t.Helper()
	for part := range slices.Chunk(points, atOnce) {
		var runs []*tracedRun
		for _, p := range part {
			runs = append(runs, s.start(t, p, o))
		}
		var supervisors []int
		for _, r := range runs {
			out, tr := r.end(t)
			supervisors = append(supervisors, tr.Supervisor)
			if tr.Hit {
				each(r, out)
			} else {
				t.Logf("%s: not met in this run", r)
			}
		}
		failed := t.Failed()
		after(supervisors)
		if t.Failed() && !failed {
			t.Fatalf("after %v", part)
		}
	}
}

// Each system call of the set-up, of the supervisor's side and of the inside,
// fails in turn. The run is refused, and says what failed; or the call is one
// of those that nothing depends on. In no case does the program see a weaker
// confinement, or is anything left.
func TestEveryFailedCall(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		s := newSetup(t, who)
		ownIDs(t)
		before := look(t)
		errnos := []syscall.Errno{syscall.EPERM}
		if os.Getenv(envAll) != "" {
			errnos = append(errnos, syscall.EINVAL, syscall.ENOENT, syscall.ENOSYS, syscall.ENOMEM)
		}
		points := s.points(t)
		t.Logf("%d calls", len(points))
		for _, errno := range errnos {
			s.batches(t, points, order{Errno: int(errno)}, func(r *tracedRun, o testkit.Output) {
				if why := s.judge(r.point, errno, o); why != "" {
					t.Errorf("%s: %v: %s\nexit %d, outcome %q\n%s%s", r, errno, why, o.Exit, o.Result.Outcome, o.Stderr, s.diff(o.Stdout))
				}
			}, func(supervisors []int) {
				for _, pid := range supervisors {
					nothing(t, before, pid)
				}
			})
		}
	})
}

// The supervisor is killed at each call in turn, alone or with init, also
// between the making of a group and its lock, and between clone and execve.
// Everything that runs ends, and the sweep finds the rest.
func TestKilledAtEveryCall(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		s := newSetup(t, who)
		ownIDs(t)
		before := look(t)
		var points []point
		for _, p := range s.points(t) {
			if p.n == 1 && !strings.HasPrefix(p.key, child) { // it is the program soon, and dies as it does
				points = append(points, p)
			}
		}
		for i, kill := range []string{"supervisor", "all"} {
			var some []point
			for j, p := range points { // each at one of the two, of init's every second one, unless all are asked for
				if os.Getenv(envAll) != "" || j%2 == i && (j%4 < 2 || !strings.HasPrefix(p.key, initRole)) {
					some = append(some, p)
				}
			}
			s.batches(t, some, order{Kill: kill}, func(r *tracedRun, o testkit.Output) {
				if o.Exit != 137 || o.HasResult {
					t.Errorf("%s: the killed supervisor's exit code is %d", r, o.Exit)
				}
				if !strings.HasPrefix(s.view, o.Stdout) {
					t.Errorf("%s: the program saw another confinement\n%s", r, s.diff(o.Stdout))
				}
			}, func(supervisors []int) {
				gone(t, before, "/nonexistent")
				sweep(t, who)
				for _, pid := range supervisors {
					nothing(t, before, pid)
				}
			})
		}
	})
}

// ownIDs makes the file for the locks of host ids where the kernel's cannot be
// had: it is made once and stays.
func ownIDs(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(hostid.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hostid.Dir+"/ids", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// judge says what is wrong with a run in which a call failed, "" for nothing.
func (s *setup) judge(p point, errno syscall.Errno, o testkit.Output) string {
	why, weaker := s.harmless(p)
	switch {
	case o.Stdout == s.view:
	case o.Exit != 0 && strings.HasPrefix(s.view, o.Stdout): // nothing, or what it had said when it was killed
	case weaker && confinement(o.Stdout) == confinement(s.view):
	default:
		return "the program ran and saw another confinement"
	}
	first, _, _ := strings.Cut(o.Stderr, "\n")
	switch {
	case o.Exit == 0 && why == "":
		return "nobody has noticed"
	case o.Exit == 0 && !weaker && !slices.EqualFunc(o.Result.Layers, s.res.Layers, sameLayer):
		return fmt.Sprintf("the layers are %+v", o.Result.Layers)
	case o.Exit == 0:
		return ""
	case o.Exit < 125 || o.Exit > 127:
		return "neither refused nor run"
	case o.HasResult && o.Result.Outcome != result.Failed && o.Result.Outcome != result.Refused && o.Result.Error == "":
		return "the result does not say that it failed"
	case !strings.HasPrefix(first, "sandglass: error: ") || strings.Contains(o.Stderr, "goroutine "):
		return "no error line"
	case !strings.Contains(first, errno.Error()) && !nameless(p):
		return "the error does not say what failed"
	}
	return ""
}

func sameLayer(a, b result.Layer) bool { return a.Name == b.Name && a.State == b.State }

// confinement is a view without what is mounted and shown.
func confinement(view string) string {
	var keep []string
	for line := range strings.Lines(view) {
		if !strings.HasPrefix(line, "mount ") && !strings.HasPrefix(line, "/sys/fs/cgroup/") && !strings.HasPrefix(line, "kill init ") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// diff is what a program saw and did not see.
func (s *setup) diff(view string) string {
	if view == "" || view == s.view {
		return ""
	}
	var b strings.Builder
	want, got := strings.Split(s.view, "\n"), strings.Split(view, "\n")
	for _, l := range want {
		if !slices.Contains(got, l) {
			b.WriteString("- " + l + "\n")
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			b.WriteString("+ " + l + "\n")
		}
	}
	return b.String()
}

// reasons are calls that may fail, and why the run is none the worse. weaker
// says that less is mounted or shown then, or that the result says what is absent.
// For an ordinary user without control groups there are a few more.
var reasons = []struct {
	calls  string
	weaker bool
	why    string
}{
	{`(supervisor|init) (openat|read) /sys/kernel/mm/.*`, false, "Go's runtime, for its heap"},
	{`(supervisor|init) (openat|read) /proc/(self|N)/(cgroup|mountinfo) \(1\)`, false, "Go's runtime, for GOMAXPROCS"},
	{`(supervisor|init) (openat|pread64) /sys/fs/cgroup/cpu/cpu.cfs_.*`, false, "Go's runtime, for GOMAXPROCS"},
	{`(supervisor|init) openat /proc/self/auxv .*`, false, "Go's runtime"},
	{`init rt_sigaction \([0-9]+\)`, false, "Go's runtime, before main: of the last one init's step is told"},
	{`supervisor openat /proc/sys/kernel/(cad_pid|overflowgid) .*`, false, "the locks are in a file of our own then"},
	{`supervisor (openat|getdents64) /sys/fs/cgroup/[a-z]+ .*`, false, "the sweep before the run: the next one does it"},
	{`supervisor prctl 0x[34] .*`, false, "the supervisor stays unreadable for its own user"},
	{`supervisor (mkdirat|openat|flock|fchmod|unlinkat) /sys/fs/cgroup/(cpuacct|cpuset)/sandglass-ID .*`, true, "no limit: a figure, and what the program is shown"},
	{`supervisor (openat|write|read|pread64) (/sys/fs/cgroup/cpuset/.*|cpuset\..*)`, true, "no limit: what the program is shown"},
	{`supervisor openat tasks .*`, true, "of cpuset: no limit; the others are refused"},
	{`supervisor (openat2|fstat|openat|getdents64) (/usr|/libANY|/etcANY|/etc/ANY|/nix/ANY|/gnu/ANY|/opt.*) .*`, true, "less of the host is inside"},
	{`supervisor mount_setattr .*`, true, "a read-only source that everybody may read: without a mapping it has no owner inside"},
	{`supervisor (openat|read) /proc/(cpuinfo|cgroups|stat|meminfo|uptime) .*`, true, "what the program is shown"},
	{`supervisor (wait4|waitid) .*`, false, "the wait for a child of one's own fails only when there is none"},
	{`supervisor read pipe:.* \([1-3]\)`, false, "the end of one's own pipe tells of init's execve; what it misses is met when its plan is sent"},
	{`supervisor (openat|write|read) (memory.oom_control|cgroup.event_control|/sys/fs/cgroup/.*/cgroup.event_control) .*`, false, "the verdict counts the kills at the end as well"},
	{`supervisor (eventfd2|memfd_create) .*`, false, "the limits are the cgroup's"},
	{`supervisor (openat|read) /proc/sys/net/.*`, false, "of what no cgroup is charged for: the largest that there can be is taken"},
	{`supervisor (openat|read|pread64) (memory|pids|cpu|cpuacct)\..*`, false, "figures of the result, after the end"},
	{`supervisor pidfd_send_signal .*`, false, "the group's kill, init's control socket and its parent's death end it as well"},
	{`supervisor recvmsg socket:.*`, false, "after the end was told"},
	{`supervisor (clock_.*|getrusage|sched_.*|getpriority) .*`, false, "figures"},
	{`supervisor (unlinkat|rmdir) /sys/fs/cgroup/.*`, false, "it is tried again"},
	{`supervisor (openat pids.max|write .*/pids.max) \(2\)`, false, "what it stops is killed in several passes anyway"},
	{`supervisor (openat|read) /proc/sys/kernel/osrelease .*`, false, "the words of a hint"},
	{`supervisor read /proc/N/cgroup .*`, false, "the words of a hint, and Go's runtime"},
	{`supervisor (openat|read) /sys/devices/system/cpu/online .*`, false, "the kernel's count of TCP's pages is nothing to go by then: the tables are read"},
	{`supervisor (openat|read) /proc/self/net/sockstatN? .*`, false, "of what no cgroup is charged for: all that the host has counts for the run's then"},
	{`supervisor (openat|read) /proc/N/(net/.*|stat|smaps.*|task.*) .*`, false, "one look of many"},
	{`supervisor read /proc/N/status \(([3-9]|[1-9][0-9]+)\)`, false, "one look of many, after the read-back"},
	{`init (openat|fstatfs) /proc/sys/user .*`, false, "a new /proc is asked then"},
	{`init landlock_create_ruleset \(1\)`, true, "a kernel without Landlock: the result says that it is absent"},
	{`init (openat2|fstat|pread64) /opt/test/prog .*`, false, "a program that cannot be read is none that its children can open"},
	{`supervisor getpeername .*`, false, "Go asks a listener for its peer, and it has none"},
	{`supervisor (accept4|recvfrom) .*`, false, "of the list of hosts: nothing comes in there, so nobody is reached"},
	{`supervisor ppoll .*`, false, "whether a last connection waits to be accepted: it is reset then"},
	{`supervisor (openat|pread64) cgroup.(procs|events) .*`, false, "whether the group is empty, so that the run is over: init's end is waited for then"},
	{`supervisor (openat|read) /proc/N/mountinfo .*`, false, "before the program's start: they are read at it then"},
	{`init getrlimit .*`, false, "init's own room"},
}

var withoutGroups = regexp.MustCompile(`^supervisor (mkdirat|openat) /sys/fs/cgroup/.*`)

// ownIDCalls find out whether an ordinary user's run can have an id of its own.
var ownIDCalls = regexp.MustCompile(`^supervisor (prctl 0x27|(openat|read) (/etc/ANY|/proc/(self|N)/[ug]id_map))$`)

func (s *setup) harmless(p point) (why string, weaker bool) {
	if !s.who.Limited() && withoutGroups.MatchString(p.key) {
		return "--allow-degraded: it fails anyway", false
	}
	if !s.who.IsRoot() && ownIDCalls.MatchString(p.key) {
		return "the run has the caller's id then, as it has when nothing fails, and its result says why", false
	}
	for _, r := range reasons {
		if regexp.MustCompile("^(" + r.calls + ")$").MatchString(p.String()) {
			return r.why, r.weaker
		}
	}
	return "", false
}

// namelessCalls are those after which nobody can say what failed: the way on
// which it would be said, and the start of Go's runtime.
var namelessCalls = regexp.MustCompile(`^(init (recvmsg|sendmsg|read) socket:.*|init openat /dev/null .*|init rt_sigaction .*|init wait4 .*|init capset \([2-9]\))$`)

func nameless(p point) bool { return namelessCalls.MatchString(p.String()) }
