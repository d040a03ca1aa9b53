package escape

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

//go:embed testdata/try.c
var trySource string

// try is one forbidden thing in the words of testdata/try.c, and the exact
// answer that it must get; "A|B" where the kernel answers one or the other.
type try struct{ op, want string }

// attempt does the ops in one sandbox and returns what else was printed.
func attempt(t *testing.T, who testkit.Who, flags []string, tries []try) string {
	t.Helper()
	ops := make([]string, len(tries))
	for i, x := range tries {
		ops[i] = x.op
	}
	o := testkit.RunC(t, testkit.Opts{Who: who}, flags, trySource, ops...)
	if o.Exit != 0 {
		t.Fatalf("exit %d\nstdout: %s\nstderr: %s", o.Exit, o.Stdout, o.Stderr)
	}
	var rest strings.Builder
	next := 0
	for line := range strings.Lines(o.Stdout) {
		line = strings.TrimSuffix(line, "\n")
		if next < len(tries) && strings.HasPrefix(line, tries[next].op+" ") {
			if got := strings.TrimPrefix(line, tries[next].op+" "); !slices.Contains(strings.Split(tries[next].want, "|"), got) {
				t.Errorf("%s: %s, want %s", tries[next].op, got, tries[next].want)
			}
			next++
			continue
		}
		fmt.Fprintln(&rest, line)
	}
	if next != len(tries) {
		t.Fatalf("%q was never answered\nstdout: %s\nstderr: %s", tries[next].op, o.Stdout, o.Stderr)
	}
	return rest.String()
}

// all gives every op the same answer.
func all(want string, ops ...string) []try {
	list := make([]try, len(ops))
	for i, op := range ops {
		list[i] = try{op, want}
	}
	return list
}

// must fails the test when a run did not end with 0.
func must(t *testing.T, o testkit.Output) testkit.Output {
	t.Helper()
	if o.Exit != 0 {
		t.Fatalf("exit %d\nstdout: %s\nstderr: %s", o.Exit, o.Stdout, o.Stderr)
	}
	return o
}

// live is a sandbox that waits for its stdin to end.
type live struct {
	*testkit.Process
	init, program int // on the host
	release       func()
}

// hold starts a sandbox that prints "ready" and waits for end of file.
func hold(t *testing.T, o testkit.Opts, script string, flags ...string) *live {
	t.Helper()
	args := append(append([]string{}, flags...), "--", "sh", "-c", "echo ready; cat >/dev/null; "+script)
	p, release := testkit.Hold(t, o, args...)
	l := &live{Process: p, release: release}
	p.WaitLine("ready")
	// A supervisor of a sandbox with an id of its own has another child for a
	// moment, again and again: see sys.Owned.
	inits := slices.DeleteFunc(testkit.Children(t, p.PID()), func(pid int) bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.HasPrefix(string(text), "sandglass-init\x00")
	})
	if len(inits) != 1 {
		t.Fatalf("the supervisor has the children %v, want one", inits)
	}
	l.init = inits[0]
	programs := testkit.Children(t, l.init)
	if len(programs) != 1 {
		t.Fatalf("init has the children %v, want one", programs)
	}
	l.program = programs[0]
	return l
}

// status is one field of /proc/PID/status on the host.
func status(t *testing.T, pid int, field string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in the status of %d", field, pid)
	return ""
}

// write makes a file on the host that everybody may read.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// slicesOf joins lists of tries.
func slicesOf(lists ...[]try) []try { return slices.Concat(lists...) }

// unseen is what a process that hidepid hides answers: ENOENT, or EPERM when
// the kernel has its name in the cache.
const unseen = "ENOENT|EPERM"
