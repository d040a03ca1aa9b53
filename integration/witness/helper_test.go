package witness

import (
	"os"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// live is a run whose program waits for the end of its input.
type live struct {
	*testkit.Process
	groups  []string // its directories
	release func()
}

func hold(t *testing.T, before, after string, flags ...string) *live {
	t.Helper()
	args := append(append([]string{}, flags...), "--", "sh", "-c", before+"echo ready; cat >/dev/null; :; "+after)
	p, release := testkit.Hold(t, testkit.Opts{}, args...)
	l := &live{Process: p, release: release}
	p.WaitLine("ready")
	l.groups = testkit.CgroupsOf(p.PID())
	return l
}

// limits are what every run here is given, and what the witness must read.
var limits = []string{"--memory", "64m", "--pids-limit", "17", "--cpus", "0.3", "--timeout", "100s"}

// burnt uses CPU time until the kernel has held the program back, which it has no
// cause for as long as a busy host gives it less than its limit.
const burnt = testkit.Inside + " burn 300; until grep -qs 'nr_throttled [1-9]' /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat; do " +
	testkit.Inside + " burn 50; done; "

func hog(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../limits/testdata/hog.c")
	if err != nil {
		t.Fatal(err)
	}
	return testkit.C(t, string(text))
}

func ended(t *testing.T, o testkit.Output, outcome result.Outcome, exit int) {
	t.Helper()
	if o.Result.Outcome != outcome || o.Exit != exit {
		t.Errorf("%s, exit %d; want %s, exit %d\nstdout: %s\nstderr: %s", o.Result.Outcome, o.Exit, outcome, exit, o.Stdout, o.Stderr)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("the witness reads %s %v, want %v", what, got, want)
	}
}

// readBack is what sandglass itself read of the kernel.
func readBack(t *testing.T, o testkit.Output) map[string]string {
	t.Helper()
	for _, l := range o.Result.Layers {
		if l.Name == "cgroup" {
			return l.ReadBack
		}
	}
	t.Fatalf("no cgroup layer in the result\n%s", o.Stderr)
	return nil
}

// below cuts a directory to the name that it has below a mount.
func below(path, mount string) string { return strings.TrimPrefix(path, mount) }
