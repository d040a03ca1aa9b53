package witness

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"github.com/containerd/cgroups/v3/cgroup1"
)

// load is the witness's view of a run's groups in all hierarchies, each below
// the caller's own group there.
func load(t *testing.T, l *live) cgroup1.Cgroup {
	t.Helper()
	if len(l.groups) < 3 {
		t.Fatalf("groups of the run: %q", l.groups)
	}
	name := filepath.Base(l.groups[0])
	own, err := cgroup1.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cgroup1.Load(func(s cgroup1.Name) (string, error) {
		path, ok := own[string(s)]
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", string(s), path, name)); err != nil || !ok {
			return "", cgroup1.ErrControllerNotActive
		}
		return filepath.Join(path, name), nil
	}, func(c *cgroup1.InitConfig) error { c.InitCheck = cgroup1.AllowAny; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func subsystems(c cgroup1.Cgroup) []string {
	var names []string
	for _, s := range c.Subsystems() {
		names = append(names, string(s.Name()))
	}
	slices.Sort(names)
	return names
}

func TestCgroup1Limits(t *testing.T) {
	testkit.Requires(t, "root", "cgroup1-memory", "cgroup1-pids", "cgroup1-cpu")
	l := hold(t, "sleep 600 & ", "", limits...)
	c := load(t, l)
	names := subsystems(c)
	for _, want := range []string{"cpu", "cpuacct", "memory", "pids"} {
		if !slices.Contains(names, want) {
			t.Errorf("the witness finds %q, without %s", names, want)
		}
	}
	testkit.Eventually(t, "sh, sleep and cat have joined", func() bool {
		procs, err := c.Processes(cgroup1.Memory, false)
		return err == nil && len(procs) == 3
	})
	s, err := c.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "memory.limit_in_bytes", s.Memory.Usage.Limit, 64<<20)
	same(t, "memory.memsw.limit_in_bytes", s.Memory.Swap.Limit, 64<<20)
	same(t, "pids.max", s.Pids.Limit, 17)
	same(t, "pids.current", s.Pids.Current, 3)
	l.release()
	back := readBack(t, l.Wait())
	same(t, "what sandglass reads as memory.limit_in_bytes", back["memory.limit_in_bytes"], "67108864")
	same(t, "what sandglass reads as pids.max", back["pids.max"], "17")
	same(t, "what sandglass reads as cpu.cfs_quota_us", back["cpu.cfs_quota_us"], "30000")
}

func TestCgroup1Figures(t *testing.T) {
	testkit.Requires(t, "root", "cgroup1-memory", "cgroup1-pids", "cgroup1-cpu")
	l := hold(t, burnt+"head -c 20m /dev/zero >/tmp/x; ", "", append([]string{"-v", hog(t) + ":" + testkit.Inside}, limits...)...)
	s, err := load(t, l).Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		t.Fatal(err)
	}
	l.release()
	o := l.Wait()
	ended(t, o, result.Exited, 0)
	if s.CPU.Throttling.ThrottledPeriods == 0 {
		t.Error("300 ms at 0.3 CPUs were never throttled")
	}
	if seen := int64(s.CPU.Usage.Total / 1_000_000); seen < 300 || o.Result.CPUMS < seen || o.Result.CPUMS > 10*seen {
		t.Errorf("cpu_ms %d, the witness saw %d", o.Result.CPUMS, seen)
	}
	if peak := o.Result.MemoryPeakBytes; peak < int64(s.Memory.Usage.Max) || peak < 20<<20 || peak > 64<<20 {
		t.Errorf("memory_peak_bytes %d, the witness saw %d", peak, s.Memory.Usage.Max)
	}
}

// What a killed supervisor leaves, the witness can delete.
func TestCgroup1DeleteByOthers(t *testing.T) {
	testkit.Requires(t, "root", "cgroup1-memory", "cgroup1-pids", "cgroup1-cpu")
	l := hold(t, "", "", limits...)
	c := load(t, l)
	procs, err := c.Processes(cgroup1.Memory, false)
	if err != nil {
		t.Fatal(err)
	}
	l.Kill()
	for _, p := range procs {
		testkit.WaitGone(t, p.Pid)
	}
	// Another run's sweep may come first, at any of these steps: then groups are gone,
	// or go, and the witness has its own words for what it does not find.
	swept := func() bool { return slices.ContainsFunc(l.groups, func(path string) bool { return !there(path) }) }
	testkit.Eventually(t, "the groups are empty", func() bool {
		left, err := c.Processes(cgroup1.Memory, false)
		return err == nil && len(left) == 0 || swept()
	})
	if err := c.Delete(); err != nil && !swept() {
		t.Fatal(err)
	}
	for _, path := range l.groups {
		if filepath.Base(filepath.Dir(path)) != "cpuset" {
			testkit.Eventually(t, path+" is gone", func() bool { return !there(path) })
		}
	}
	ended(t, testkit.Run(t, testkit.Opts{}, "--", "true"), result.Exited, 0) // sweeps the rest
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
