package v2

import (
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
	"sandglass/pkg/result"
)

// A kernel that was booted without the memory controller: the limit is refused
// by name with what to boot with. Whoever allows it by name gets the watchdog
// for it, and the other limits by the kernel still.
func TestMissingController(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2-pids")
	have := strings.Fields(read(t, top, "cgroup.controllers"))
	if slices.Contains(have, "memory") {
		testkit.Skip(t, "a kernel without the memory controller", "one with it")
	}
	strict := testkit.Opts{Strict: true} // without it the test kit allows what this host lacks
	refused(t, testkit.Run(t, strict, "--", "echo", "ran"),
		"memory limit: the memory controller is not available in /sys/fs/cgroup (available: "+strings.Join(have, " ")+")",
		"boot with cgroup_enable=memory and without cgroup_disable=memory, cgroup_no_v1=all for hybrid hosts")
	host := agree.As(testkit.AsRoot(t))
	agree.Run(t, host, agree.Report(t, host))
	if left := testkit.Cgroups(); len(left) != 0 {
		t.Errorf("the refusal has left %q", left)
	}
	o := testkit.Run(t, strict, "--allow-degraded", "memory", "--memory", "48m", "--timeout", "100s", "-e", "HOLD=1",
		"-v", hog(t)+":"+testkit.Inside, "--", testkit.Inside, "memory", "anon", "100")
	ended(t, o, result.Memory, 137)
	for limit, want := range map[string]result.Enforcer{"memory": result.ByWatchdog, "pids": result.ByCgroup2, "cpus": result.ByCgroup2} {
		if by := o.Result.Limits[limit].EnforcedBy; by != want {
			t.Errorf("%s is held by %s, want %s", limit, by, want)
		}
	}
}
