package witness

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/containerd/cgroups/v3/cgroup2/stats"
)

const top = "/sys/fs/cgroup"

// manager is the witness's view of one of a run's groups.
func manager(t *testing.T, l *live, leaf string) *cgroup2.Manager {
	t.Helper()
	if len(l.groups) != 1 {
		t.Fatalf("groups of the run: %q, want one", l.groups)
	}
	m, err := cgroup2.Load(below(l.groups[0], top) + leaf)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func stat(t *testing.T, m *cgroup2.Manager) *stats.Metrics {
	t.Helper()
	s, err := m.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCgroup2Limits(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "sleep 600 & ", "", limits...)
	box := manager(t, l, "/box")
	testkit.Eventually(t, "sh, sleep and cat are in the box", func() bool {
		procs, err := box.Procs(true)
		return err == nil && len(procs) == 3
	})
	s := stat(t, box)
	same(t, "memory.max", s.Memory.UsageLimit, 64<<20)
	same(t, "memory.swap.max", s.Memory.SwapLimit, 0)
	same(t, "pids.max", s.Pids.Limit, 17)
	same(t, "pids.current", s.Pids.Current, 3) // sh, sleep, cat
	if s.Memory.Usage == 0 || s.Memory.Usage > 64<<20 {
		t.Errorf("memory.current %d", s.Memory.Usage)
	}
	if kind, err := box.GetType(); kind != cgroup2.Domain || err != nil {
		t.Errorf("type %q, %v", kind, err)
	}
	controllers, err := box.Controllers()
	slices.Sort(controllers)
	if want := []string{"cpu", "memory", "pids"}; !slices.Equal(controllers, want) || err != nil {
		t.Errorf("controllers %q, %v, want %q", controllers, err, want)
	}
	// Init's group has no limit, and one process.
	init := manager(t, l, "/init")
	if procs, err := init.Procs(false); err != nil || len(procs) != 1 {
		t.Errorf("processes of init's group %v, %v", procs, err)
	}
	l.release()
	o := l.Wait()
	back := readBack(t, o)
	same(t, "what sandglass reads as memory.max", back["memory.max"], "67108864")
	same(t, "what sandglass reads as pids.max", back["pids.max"], "17")
	same(t, "what sandglass reads as cpu.max", back["cpu.max"], "30000 100000")
}

// The figures of the end are those that the witness saw last.
func TestCgroup2Figures(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, burnt+"head -c 20m /dev/zero >/tmp/x; ", "", append([]string{"-v", hog(t) + ":" + testkit.Inside}, limits...)...)
	s := stat(t, manager(t, l, "/box"))
	l.release()
	o := l.Wait()
	ended(t, o, result.Exited, 0)
	if s.CPU.NrThrottled == 0 || s.CPU.ThrottledUsec == 0 {
		t.Errorf("300 ms at 0.3 CPUs: throttled in %d periods for %d µs", s.CPU.NrThrottled, s.CPU.ThrottledUsec)
	}
	// The shell's own end comes on top, which is slow under emulation.
	if seen := int64(s.CPU.UsageUsec / 1000); seen < 300 || o.Result.CPUMS < seen || o.Result.CPUMS > 10*seen {
		t.Errorf("cpu_ms %d, the witness saw %d", o.Result.CPUMS, seen)
	}
	if s.Memory.Shmem != 20<<20 {
		t.Errorf("the scratch holds %d, want %d", s.Memory.Shmem, 20<<20)
	}
	if peak := o.Result.MemoryPeakBytes; peak < int64(s.Memory.MaxUsage) || peak < 20<<20 || peak > 64<<20 {
		t.Errorf("memory_peak_bytes %d, the witness saw %d", peak, s.Memory.MaxUsage)
	}
}

// The witness is told of the same kills. The supervisor is stopped meanwhile, or
// the group could be gone before the witness has read.
func TestCgroup2Events(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	dir := testkit.Dir(t)
	after := "echo armed; while [ ! -e /sign/go ]; do sleep 0.1; done; exec " + testkit.Inside + " memory anon 200"
	l := hold(t, "sleep 600 & ", after, append([]string{"-v", hog(t) + ":" + testkit.Inside, "-v", dir + ":/sign"}, limits...)...)
	box := manager(t, l, "/box")
	if e := stat(t, box).MemoryEvents; e.OomKill != 0 {
		t.Fatalf("%d kills before", e.OomKill)
	}
	events, errs := box.EventChan()
	l.release()
	l.WaitLine("armed")
	l.Stop()
	t.Cleanup(func() { syscall.Kill(l.PID(), syscall.SIGCONT) })
	if err := os.WriteFile(dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var last cgroup2.Event
	for told := true; told && last.OOMGroupKill == 0; { // the last that the kernel counts
		select {
		case last = <-events:
		case err := <-errs: // closed when the group is empty
			t.Log("the witness ends:", err)
			told = false
		}
	}
	testkit.Eventually(t, "the box is empty", func() bool { return procs(t, l.groups[0]+"/box") == "" })
	at := stat(t, box).MemoryEvents // the end, of which it may not be told any more
	l.Signal(syscall.SIGCONT)
	o := l.Wait()
	ended(t, o, result.Memory, 137)
	if last.OOM == 0 || int64(at.OomKill) != o.Result.OOMKills {
		t.Errorf("the witness was told of %+v and reads %d kills, oom_kills is %d", last, at.OomKill, o.Result.OOMKills)
	}
	same(t, "oom_group_kill", at.OomGroupKill, 1)
}

// The witness kills the box, by its own code: init lives to tell, and the groups
// are gone.
func TestCgroup2KillByOthers(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "sleep 600 & ", "", limits...)
	box := manager(t, l, "/box")
	if err := box.Delete(); err == nil || !strings.Contains(err.Error(), "still contains running tasks") {
		t.Errorf("deleting a box with processes: %v", err)
	}
	if err := box.Kill(); err != nil {
		t.Fatal(err)
	}
	o := l.Wait()
	ended(t, o, result.Signaled, 137)
	if _, err := os.Stat(l.groups[0]); err == nil {
		t.Errorf("%s is left", l.groups[0])
	}
}

// What a killed supervisor leaves, the witness can delete.
func TestCgroup2DeleteByOthers(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "", "", limits...)
	pids := strings.Fields(procs(t, l.groups[0]+"/init"))
	l.Kill()
	for _, pid := range pids { // with the supervisor init dies, and with init all
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		testkit.WaitGone(t, n)
	}
	testkit.Eventually(t, "the groups are empty", func() bool {
		return procs(t, l.groups[0]+"/init")+procs(t, l.groups[0]+"/box") == ""
	})
	m := manager(t, l, "")
	if err := m.Delete(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.groups[0]); err == nil {
		t.Errorf("%s is left", l.groups[0])
	}
	// The next run removes what is left of the parent.
	ended(t, testkit.Run(t, testkit.Opts{}, "--", "true"), result.Exited, 0)
	if left := testkit.Cgroups(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func procs(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(dir + "/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
