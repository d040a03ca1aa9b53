package session

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// TestWarmResultIsLast: with the result no process of the run is left, whatever the
// program has left behind; what is taken apart after it is gone with the session.
func TestWarmResultIsLast(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := openWarm(t, who, "command=4", "--max-running", "1", "--timeout", "2m")
		for i := range 4 {
			marker := fmt.Sprintf("sleep %d.%d", 200000+os.Getpid(), i)
			id := fmt.Sprint(i)
			c.sh(id, "for i in 1 2 3 4 5 6 7 8; do "+marker+" & done; echo", "")
			r := c.lastOf(id)
			if left := testkit.Processes(marker); len(left) > 0 {
				t.Errorf("%d processes are left with the result, such as %q", len(left), left[0])
			}
			if r.Type != "result" || !r.Result.Warm || r.Result.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
		}
		// One after the other, and the end of the requests right behind the last.
		for i := range 12 {
			c.send(`{"type":"run","id":"q%d","command":["true"]}`, i)
		}
		for i := range 12 {
			c.ended(fmt.Sprint("q", i))
		}
		c.close()
		if left := testkit.CgroupsLeft(t, c.p.PID()); len(left) > 0 {
			t.Errorf("cgroups are left: %q", left)
		}
	})
}

// confined says whether a process has no capability and a filter.
func confined(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc([]string{"CapInh:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "Seccomp:\t2\n"},
		func(line string) bool { return !strings.Contains(string(status), line) })
}
