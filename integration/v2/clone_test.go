package v2

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// trace has the kernel tell of every group that is made and every process that
// is moved into one, by a write to cgroup.procs. It returns what was told since.
func trace(t *testing.T) func() (made, moved []string) {
	t.Helper()
	const tracing = "/sys/kernel/tracing"
	if !exists(tracing + "/instances") {
		testkit.Skip(t, "tracefs", "none at "+tracing)
	}
	dir := tracing + "/instances/test-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Rmdir(dir); err != nil {
			t.Error(err)
		}
	})
	write(t, "1", dir, "events/cgroup/cgroup_mkdir/enable")
	write(t, "1", dir, "events/cgroup/cgroup_attach_task/enable")
	return func() (made, moved []string) {
		t.Helper()
		for line := range strings.Lines(read(t, dir, "trace")) {
			if _, e, ok := strings.Cut(line, "cgroup_mkdir: "); ok {
				_, path, _ := strings.Cut(e, "path=")
				made = append(made, strings.TrimSpace(path))
			}
			if _, e, ok := strings.Cut(line, "cgroup_attach_task: "); ok {
				moved = append(moved, strings.TrimSpace(e))
			}
		}
		write(t, "", dir, "trace")
		return made, moved
	}
}

// Init and the program are in their groups from their first instruction: the
// kernel makes the groups and moves nobody. A write to cgroup.procs would wait
// for milliseconds, and what forks meanwhile would count outside.
func TestNobodyIsMoved(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	told := trace(t)
	o := testkit.Sh(t, testkit.AsRoot(t), "echo done")
	ended(t, o, result.Exited, 0)
	made, moved := told()
	for i, path := range made { // the run's name has a PID in it
		if at := strings.Index(path, "/sandglass-"); at >= 0 {
			name, rest, _ := strings.Cut(path[at+1:], "/")
			if !strings.Contains(name, "-"+strconv.Itoa(o.PID)+"-") {
				t.Errorf("%s is no group of this run", path)
			}
			made[i] = path[:at] + "/ID/" + rest
		}
	}
	if want := []string{"/sandglass", "/sandglass/ID/", "/sandglass/ID/init", "/sandglass/ID/box"}; !slices.Equal(made, want) {
		t.Errorf("made %q, want %q", made, want)
	}
	if len(moved) != 0 {
		t.Errorf("moved: %q", moved)
	}
	// The kernel does tell of a process that is moved.
	g := group(t, "moved")
	cmd := exec.Command("sh", "-c", "echo 0 >"+top+g+"/cgroup.procs")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, moved := told(); len(moved) != 1 || !strings.Contains(moved[0], "dst_path="+g+" ") {
		t.Errorf("of a process that moved itself the kernel tells %q", moved)
	}
}

// Where they are, as the kernel has it.
func TestWhoIsWhere(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "", "")
	if got := read(t, l.run, "cgroup.procs"); got != "" {
		t.Errorf("processes %q in the run's own group", got)
	}
	if n := len(strings.Fields(read(t, l.init, "cgroup.procs"))); n != 1 {
		t.Errorf("%d processes in init's group", n)
	}
	testkit.Eventually(t, "sh and cat are in the box", func() bool { return len(strings.Fields(read(t, l.box, "cgroup.procs"))) == 2 })
	if !strings.HasPrefix(l.run, top+"/sandglass/sandglass-") {
		t.Errorf("the run's group is %s", l.run)
	}
	l.release()
	ended(t, l.Wait(), result.Exited, 0)
	gone(t, l)
}
