package hosts

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
	"sandglass/pkg/doctor"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// hybrid skips where the controllers are not on cgroup v1 with a v2 tree beside them.
func hybrid(t *testing.T) {
	t.Helper()
	testkit.Requires(t, "root", "userns", "cgroup1-memory", "cgroup1-pids", "cgroup1-cpu")
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), " - cgroup2 ") {
		testkit.Skip(t, "hybrid control groups", "cgroup v1 alone")
	}
}

// Where v2 is beside v1 and has no controller, limits are held by v1: root's runs
// start, and a user is told why theirs do not, and may have weaker limits by name.
func TestHybrid(t *testing.T) {
	hybrid(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := agree.As(who)
		r := agree.Report(t, h)
		if r.Host.Cgroup != "hybrid" {
			t.Errorf("control groups: %s", r.Host.Cgroup)
		}
		o, by := echo(t, who), map[string]result.Enforcer{"memory": result.ByCgroup1, "cpus": result.ByCgroup1, "pids": result.ByCgroup1}
		works(t, o)
		if !who.IsRoot() {
			by = map[string]result.Enforcer{"memory": result.ByWatchdog, "cpus": result.ByNone, "pids": result.ByRlimit}
			const what = "memory limit: no control group of your own: mkdir /sys/fs/cgroup/memory/"
			if r.Run.State != doctor.Less || r.Run.Flags != "--allow-degraded memory,cpu,pids" || !strings.HasPrefix(r.Run.Error, what) ||
				r.Run.Hints[0] != "sudo sandglass run script.py" {
				t.Errorf("%+v", r.Run)
			}
		}
		agree.Run(t, h, r)
		for limit, want := range by {
			if got := o.Result.Limits[limit].EnforcedBy; got != want {
				t.Errorf("%s is held by %s, want %s", limit, got, want)
			}
		}
	})
}

// A controller that v2 has, where others are on v1: one place is used for all
// limits, and the command that is printed moves it there.
func TestSplit(t *testing.T) {
	ownMachine(t)
	hybrid(t)
	const at = "/sys/fs/cgroup/pids"
	const hint = "mkdir -p " + at + " && mount -t cgroup -o pids cgroup " + at + "   # as root"
	who := testkit.AsRoot(t)
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	// The hierarchy goes a moment later than its last mount.
	testkit.Eventually(t, "the pids controller is on no v1 hierarchy", func() bool { return !onV1(t, "pids") })
	o := testkit.Run(t, testkit.Opts{Who: who, Strict: true}, "--", "echo", "ran")
	refused(t, agree.As(who), o, "pids limit: the pids controller is not on v1, where this host keeps the others",
		"boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all", hint, "--allow-degraded pids")
	paste(t, hint)
	works(t, echo(t, who))
}

// On v2 a user whom nobody has given a group is told how to get one, and may have
// weaker limits by name. The hints are those of a host without systemd.
func TestUndelegated(t *testing.T) {
	ownMachine(t)
	testkit.Requires(t, "userns", "cgroup2")
	who := testkit.AsUser(t)
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		testkit.Skip(t, "a user without a delegated cgroup", "systemd, which has one for each")
	}
	h := agree.As(who)
	r := agree.Report(t, h)
	const not = "memory, pids, cpu limits: no control group of your own: "
	if r.Run.State != doctor.Less || !strings.HasPrefix(r.Run.Error, not) && !strings.HasPrefix(r.Run.Error, "memory, pids, cpu limits: own cgroup /sys/fs/cgroup") {
		t.Errorf("%+v", r.Run)
	}
	if want := []string{"systemd-run --user --scope -p Delegate=yes sandglass run script.py", "sudo sandglass run script.py   # where there is no systemd",
		"--allow-degraded memory,pids,cpu"}; !slices.Equal(r.Run.Hints, want) {
		t.Errorf("hints %q, want %q", r.Run.Hints, want)
	}
	agree.Run(t, h, r)
}

// A v2 whose pids controller is somewhere else: that limit is refused by name, the
// others are held.
func TestWithoutPids(t *testing.T) {
	ownMachine(t)
	testkit.Requires(t, "root", "userns", "cgroup2", "cgroup2-pids")
	who, v1 := testkit.AsRoot(t), t.TempDir()
	if err := unix.Mount("cgroup", v1, "cgroup", 0, "pids"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(v1, 0)
	h := agree.As(who)
	r := agree.Report(t, h)
	if r.Run.State != doctor.Less || r.Run.Flags != "--allow-degraded pids" ||
		!strings.HasPrefix(r.Run.Error, "pids limit: the pids controller is not available in /sys/fs/cgroup (available: ") {
		t.Errorf("%+v", r.Run)
	}
	agree.Run(t, h, r)
	o := testkit.Run(t, testkit.Opts{Who: who, Strict: true}, "--allow-degraded", "pids", "--", "echo", "ran")
	works(t, o)
	for limit, want := range map[string]result.Enforcer{"memory": result.ByCgroup2, "cpus": result.ByCgroup2, "pids": result.ByRlimit} {
		if got := o.Result.Limits[limit].EnforcedBy; got != want {
			t.Errorf("%s is held by %s, want %s", limit, got, want)
		}
	}
}

// onV1 says whether a controller is on a hierarchy of v1, mounted or not.
func onV1(t *testing.T, controller string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == controller {
			return f[1] != "0"
		}
	}
	t.Fatalf("no controller %s in %s", controller, text)
	return false
}
