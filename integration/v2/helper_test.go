package v2

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const top = "/sys/fs/cgroup"

// live is a run whose program waits for the end of its input.
type live struct {
	*testkit.Process
	run, box, init string // directories of its groups
	release        func()
}

// hold starts a run that does something, prints "ready" and waits; then it does
// the rest.
func hold(t *testing.T, before, after string, flags ...string) *live {
	t.Helper()
	args := append(append([]string{}, flags...), "--", "sh", "-c", before+"echo ready; cat >/dev/null; :; "+after)
	p, release := testkit.Hold(t, testkit.Opts{}, args...)
	l := &live{Process: p, release: release}
	p.WaitLine("ready")
	groups := testkit.CgroupsOf(p.PID())
	if len(groups) != 1 {
		t.Fatalf("groups of the run: %q, want one", groups)
	}
	l.run = groups[0]
	l.box, l.init = l.run+"/box", l.run+"/init"
	return l
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func write(t *testing.T, text string, elem ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(elem...), []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// count is the value of a key in a flat keyed file, such as cpu.stat.
func count(t *testing.T, key string, elem ...string) int64 {
	t.Helper()
	for line := range strings.Lines(read(t, elem...)) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == key {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in %s", key, filepath.Join(elem...))
	return 0
}

// group makes a group of the test's own at the top and returns its name there.
// Whatever a run has left below it fails the removal.
func group(t *testing.T, name string) string {
	t.Helper()
	path := fmt.Sprintf("/test-%d-%s", os.Getpid(), name)
	if err := os.Mkdir(top+path, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Rmdir(top + path); err != nil {
			t.Errorf("removing %s: %v", path, err)
		}
	})
	return path
}

// dirFD opens a group to clone into.
func dirFD(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// source is a program of the limits' tests.
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

// refused checks a refusal's words and that a hint with this text is there.
func refused(t *testing.T, o testkit.Output, what, hint string) {
	t.Helper()
	ended(t, o, result.Refused, 125)
	if want := "sandglass: error: " + what + "\n"; !strings.Contains(o.Stderr, want) {
		t.Errorf("stderr %q, want %q", o.Stderr, want)
	}
	if !strings.Contains(o.Stderr, "hint: "+hint+"\n") {
		t.Errorf("stderr %q has no hint %q", o.Stderr, hint)
	}
	if o.Stdout != "" {
		t.Errorf("stdout %q of a program that must not have run", o.Stdout)
	}
}

// readBack is what the kernel said of the sandbox's own group.
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
