package v2

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// The killer takes the whole box, and nobody of it is left with half a program:
// not the two that hold nothing, and not init, which tells.
func TestWholeBoxIsKilled(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	o := testkit.Sh(t, testkit.AsRoot(t), "sleep 600 & sleep 600 & exec "+testkit.Inside+" memory anon 100",
		"--memory", "48m", "--timeout", "100s", "-v", hog(t)+":"+testkit.Inside)
	ended(t, o, result.Memory, 137)
	// The kernel counts the one that it chose twice: as such and in the group.
	if o.Result.OOMKills != 4 || o.Stdout != "" {
		t.Errorf("oom_kills %d, want 4; stdout %q", o.Result.OOMKills, o.Stdout)
	}
	if peak := o.Result.MemoryPeakBytes; peak < 40<<20 || peak > 49<<20 {
		t.Errorf("memory_peak_bytes %d of a limit of %d", peak, 48<<20)
	}
	back := readBack(t, o)
	for name, want := range map[string]string{"memory.max": "50331648", "memory.oom.group": "1", "memory.swap.max": "0"} {
		if back[name] != want {
			t.Errorf("%s is %q, want %q", name, back[name], want)
		}
	}
}

// With swap on this host the same program lives on under the same limit: only
// memory.swap.max ends it.
func TestSwapIsNoWayOut(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	if strings.Count(read(t, "/proc/swaps"), "\n") == 0 {
		testkit.Skip(t, "swap", "no line in /proc/swaps")
	}
	free := group(t, "swap")
	write(t, "+memory", top, "cgroup.subtree_control")
	write(t, "50331648", top+free, "memory.max")
	cmd := exec.Command(hog(t), "memory", "anon", "80")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: dirFD(t, top+free)}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "held 80\n" {
		t.Fatalf("%v: %q: swap takes nothing here, so this test shows nothing", err, out)
	}
	o := testkit.Run(t, testkit.Opts{}, "--memory", "48m", "--timeout", "100s", "-v", hog(t)+":"+testkit.Inside, "--", testkit.Inside, "memory", "anon", "80")
	ended(t, o, result.Memory, 137)
}

// What an administrator's kill of the box leaves is init, and its report.
func TestInitOutlivesTheBox(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "sleep 600 & ", "")
	if !exists(l.box + "/cgroup.kill") {
		testkit.Skip(t, "cgroup.kill", "a kernel before 5.14")
	}
	write(t, "1", l.box, "cgroup.kill")
	o := l.Wait()
	ended(t, o, result.Signaled, 137)
	if o.Result.Signal != 9 || o.Result.OOMKills != 0 {
		t.Errorf("signal %d, oom_kills %d", o.Result.Signal, o.Result.OOMKills)
	}
	gone(t, l)
}

// A frozen box takes no signal, but the kill; the clock still ends the run.
func TestFrozenBoxEnds(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "sleep 600 & ", "", "--timeout", "10s")
	write(t, "1", l.box, "cgroup.freeze")
	testkit.Eventually(t, "the box is frozen", func() bool { return count(t, "frozen", l.box, "cgroup.events") == 1 })
	ended(t, l.Wait(), result.Timeout, 124)
	gone(t, l)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func gone(t *testing.T, l *live) {
	t.Helper()
	if exists(l.run) {
		t.Errorf("%s is left", l.run)
	}
}
