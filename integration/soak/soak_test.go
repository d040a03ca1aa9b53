package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/sandbox"
)

// TestMain makes the test binary the soak as well.
func TestMain(m *testing.M) {
	sandbox.Init()
	if os.Getenv(envStage) != "" {
		os.Exit(stage())
	}
	testkit.Main(m)
}

// short runs the soak for a number of runs and returns what it printed.
func short(t *testing.T, who testkit.Who, binary string, args ...string) (string, int) {
	t.Helper()
	testkit.Requires(t, "userns", "python3", "gcc")
	list := []string{"-runs", "96", "-leg", "48", "-seed", "1", "-at", "3", "-quiet", "-init",
		"-sandglass", binary, "-prog", testkit.C(t, source)}
	if os.Getuid() == 0 {
		list = append(list, "-uid", strconv.Itoa(who.UID))
	}
	cmd := exec.Command("/proc/self/exe", append(list, args...)...)
	cmd.Env = append(os.Environ(), envStage+"=outer")
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	return string(text), exitCode(cmd.ProcessState)
}

// figure is the number of one line of the report.
func figure(t *testing.T, text, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` +([0-9]+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s", name)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// Every program of the load, by the command and by the API, once at least: no
// verdict is wrong, and nothing is left.
func TestMixedLoad(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) { right(t, who, 96) })
}

// The same of every program that a session's client can ask for, and of every end
// of a session.
func TestSessions(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		right(t, who, 70, "-sessions", "-runs", "70", "-leg", "24", "-at", "8")
	})
}

// right wants a load without a mistake, in which each program was run.
func right(t *testing.T, who testkit.Who, runs int, args ...string) {
	t.Helper()
	text, exit := short(t, who, testkit.Binary(t), args...)
	for name, want := range map[string]int{"runs": runs, "failures": 0, "wrong verdicts": 0, "leftovers": 0} {
		if got := figure(t, text, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if exit != 0 {
		t.Errorf("exit %d", exit)
	}
	if m := regexp.MustCompile(`(?m)^\| .* \| 0 \| \d+ \| \d+ \| \d+ \|$`).FindString(text); m != "" {
		t.Errorf("never run: %s", m)
	}
}

// A verdict that is not the expected one is told and counted.
func TestWrongVerdictIsSeen(t *testing.T) {
	text, exit := short(t, testkit.AsUser(t), testkit.Binary(t), "-lie", "suicide")
	if n := figure(t, text, "wrong verdicts"); exit != 1 || n < 2 {
		t.Errorf("exit %d, %d wrong verdicts, want 1, at least 2", exit, n)
	}
	if !strings.Contains(text, "suicide, by cli: signaled, exit_code 139, want signaled, 140") {
		t.Error("the verdict is not told")
	}
}

// A command that removes no cgroup leaves one for each of its runs, and the
// look after the run finds it before the next run can sweep it.
func TestLeftoverIsSeen(t *testing.T) {
	testkit.Requires(t, "root", "cgroup", "go")
	careless := testkit.Mutant(t, testkit.Edit{File: "pkg/sandbox/runner.go", Old: "r.group.Close()", New: "error(nil)"})
	text, exit := short(t, testkit.AsRoot(t), careless, "-at", "1", "-grace", "50ms")
	if n := figure(t, text, "leftovers"); exit != 1 || n < 5 {
		t.Errorf("exit %d, %d leftovers, want 1, at least 5", exit, n)
	}
	testkit.Run(t, testkit.Opts{Who: testkit.AsRoot(t)}, "--", "true") // which sweeps
}
