package limits

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// unlimited is an ordinary user whom no cgroup serves.
func unlimited(t *testing.T) testkit.Who {
	who := testkit.AsUser(t)
	if who.Limited() {
		testkit.Skip(t, "a user without cgroups", "a delegated cgroup")
	}
	return who
}

// Without a cgroup a run is refused, by the names of the limits, unless each of
// them is named.
func TestNeverSilent(t *testing.T) {
	who := unlimited(t)
	for allowed, missing := range map[string]string{
		"":            "memory,pids,cpu",
		"memory":      "pids,cpu",
		"memory,cpu":  "pids",
		"pids":        "memory,cpu",
		"cpu,pids":    "memory",
		"memory,pids": "cpu",
	} {
		var flags []string
		if allowed != "" {
			flags = []string{"--allow-degraded", allowed}
		}
		o := testkit.Run(t, testkit.Opts{Who: who, Strict: true}, append(flags, "--", "echo", "ran")...)
		if o.Exit != 125 || o.Result.Outcome != result.Refused || o.Stdout != "" {
			t.Errorf("allowed %q: exit %d, %s, stdout %q", allowed, o.Exit, o.Result.Outcome, o.Stdout)
		}
		if !strings.Contains(o.Stderr, "hint: --allow-degraded "+missing+"\n") {
			t.Errorf("allowed %q: %q does not name %s", allowed, o.Stderr, missing)
		}
	}
}

// A degraded run says of each limit what holds it, and of the layer that it is
// degraded.
func TestDegradedSaysSo(t *testing.T) {
	o := testkit.Sh(t, unlimited(t), "echo ran", "--cpu-time", "5s")
	ended(t, o, result.Exited, 0, "ran\n")
	want := map[string]result.Enforcer{
		"timeout": result.ByClock, "cpu_time": result.ByWatchdog, "memory": result.ByWatchdog, "cpus": result.ByNone,
		"pids": result.ByRlimit, "disk": result.ByTmpfs, "disk_inodes": result.ByTmpfs, "output": result.ByClock,
		"open_files": result.ByRlimit, "file_size": result.ByRlimit, "stack": result.ByRlimit, "core": result.ByRlimit,
	}
	for name, l := range o.Result.Limits {
		if l.EnforcedBy != want[name] {
			t.Errorf("%s by %q, want %q", name, l.EnforcedBy, want[name])
		}
	}
	if len(o.Result.Limits) != len(want) {
		t.Errorf("%d limits, want %d", len(o.Result.Limits), len(want))
	}
	if got := cgroupLayer(t, o); got == result.Enforced {
		t.Errorf("the cgroup layer is %s", got)
	}
}

func TestFullSaysSo(t *testing.T) {
	testkit.Requires(t, "root", "cgroup")
	who := testkit.AsRoot(t)
	o := testkit.Sh(t, who, "echo ran")
	ended(t, o, result.Exited, 0, "ran\n")
	for _, name := range []string{"memory", "cpus", "pids"} {
		if l := o.Result.Limits[name]; l.EnforcedBy != by(who, result.ByNone) {
			t.Errorf("%s by %q", name, l.EnforcedBy)
		}
	}
	if got := cgroupLayer(t, o); got != result.Enforced {
		t.Errorf("the cgroup layer is %s", got)
	}
}

func cgroupLayer(t *testing.T, o testkit.Output) result.State {
	t.Helper()
	for _, l := range o.Result.Layers {
		if l.Name == "cgroup" {
			return l.State
		}
	}
	t.Error("no cgroup layer in the result")
	return ""
}

// A forking allocator, whose single processes are all small, is stopped by the
// sum over the tree.
func TestForkingAllocator(t *testing.T) {
	who := unlimited(t)
	o := testkit.RunC(t, testkit.Opts{Who: who}, []string{"--memory", "48m", "--pids-limit", "64", "--timeout", "60s"}, forking)
	ended(t, o, result.Memory, 137, "")
	if o.Result.MemoryPeakBytes <= 48<<20 {
		t.Errorf("memory_peak_bytes %d", o.Result.MemoryPeakBytes)
	}
}

// forking: each child takes 1 MiB of its own, and has the next child.
const forking = `#include <string.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 63; i++) {
        char *p = malloc(1 << 20);
        memset(p, i + 1, 1 << 20);
        if (fork() != 0) for (;;) pause();
    }
    for (;;) pause();
}
`
