package cgroup

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Only what NewID has named is ever swept.
func TestIsRun(t *testing.T) {
	for name, want := range map[string]bool{
		prefix + NewID():            true,
		"sandglass-12-1-a9z":        true,
		"sandglass-12-1-":           false,
		"sandglass-12-1":            false,
		"sandglass--1-a":            false,
		"sandglass-12-1-a-b":        false,
		"sandglass-x-1-a":           false,
		"sandglass-12-y-a":          false,
		"sandglass-12-1-A":          false,
		"sandglass-12-1-a.scope":    false,
		"sandglass-ci":              false,
		"sandglass-1-2-3.slice":     false,
		"sandglass":                 false,
		supervisorLeaf:              false,
		"other-12-1-a9z":            false,
		"sandglass-12-1-a9z\n":      false,
		"sandglass-12-1-a9z/../foo": false,
	} {
		if isRun(name) != want {
			t.Errorf("isRun(%q) = %v", name, !want)
		}
	}
}

func TestNewIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID()
		if seen[id] {
			t.Fatalf("%s came twice", id)
		}
		seen[id] = true
	}
}

// deadCreator is a group of a creator that was killed, with a process in it.
func deadCreator(t *testing.T, id, parent string) *process {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=creator:"+id, "CGROUP_TEST_PARENT="+parent)
	p := start(t, c)
	p.line(t) // from the process inside
	p.Process.Kill()
	p.Process.Wait()
	return p
}

// A group that somebody else has named is not swept, empty or not: it may be
// the --cgroup-parent of runs to come.
func TestSweepKeepsOthersGroups(t *testing.T) {
	needGroups(t)
	id := "ci-" + testID()
	p := deadCreator(t, id, "")
	defer func() {
		g := leftovers(id)
		for _, path := range g {
			fd, err := openAt(-100, path, os.O_RDONLY)
			if err != nil {
				t.Fatal(err)
			}
			d := dir{path: path, fd: fd, tasks: -1}
			if tr, _ := findTree(Options{}); tr.version == 2 {
				err = removeV2(d, farFuture())
			} else {
				err = removeV1(d, farFuture())
			}
			if err != nil {
				t.Error(err)
			}
			d.close()
		}
		if p.out.Scan() {
			t.Errorf("unexpected line %q", p.out.Text())
		}
	}()
	before := leftovers(id)
	if len(before) == 0 {
		t.Fatal("there is no group to look at")
	}
	for _, sweep := range []func(Options) (Swept, error){Sweep, SweepEverywhere} {
		s, err := sweep(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range before {
			if slices.Contains(s.Removed, path) || !exists(path) {
				t.Errorf("%s was swept", path)
			}
		}
	}
	if err := p.Process.Signal(os.Kill); err == nil {
		t.Error("the creator was not dead")
	}
}

// Under a parent that this process would not use, only SweepEverywhere looks.
func TestSweepEverywhere(t *testing.T) {
	needRoot(t)
	needGroups(t)
	tr, err := findTree(Options{})
	if err != nil {
		t.Fatal(err)
	}
	parent := "/sandglass-test.slice" // with a dot, as systemd's have
	mounts := tr.v1
	if tr.version == 2 {
		mounts = []mount{*tr.v2}
	}
	for _, m := range mounts {
		if err := os.Mkdir(m.point+parent, 0o755); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		defer os.Remove(m.point + parent)
	}
	id := testID()
	p := deadCreator(t, id, parent)
	var want []string
	for _, q := range tr.parents(parent) {
		if path := q + "/" + prefix + id; exists(path) {
			want = append(want, path)
		}
	}
	if len(want) == 0 {
		t.Fatal("there is no group to look at")
	}
	if s, err := Sweep(Options{}); err != nil || slices.Contains(s.Removed, want[0]) {
		t.Fatalf("Sweep: %+v, %v", s, err)
	}
	s, err := SweepEverywhere(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range want {
		if !slices.Contains(s.Removed, path) || exists(path) {
			t.Errorf("%s is not in %+v, or still there", path, s.Removed)
		}
	}
	if p.out.Scan() { // the pipe ends when the process inside is dead
		t.Errorf("unexpected line %q", p.out.Text())
	}
}

// TestSweepAsksACreatorOnce: who holds one of its groups holds all of that name, and
// this process's own are not tried at all.
func TestSweepAsksACreatorOnce(t *testing.T) {
	base := t.TempDir()
	const name, mine = prefix + "1-2-3", prefix + "4-5-6"
	for _, dir := range []string{"memory/" + name, "pids/" + name, "pids/" + mine} {
		if err := os.MkdirAll(base+"/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	held, err := unix.Open(base+"/memory/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	if err := unix.Flock(held, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	own.Store(mine, true)
	defer own.Delete(mine)
	s := &sweeper{tree: &tree{version: 1}, live: map[string]bool{}, deadline: time.Now().Add(time.Second)}
	want := []string{base + "/memory/" + name, base + "/pids/" + name, base + "/pids/" + mine}
	for _, path := range want {
		s.one(path) // nobody holds the lock of the last two: they would be removed
	}
	if !slices.Equal(s.found.Live, want) || len(s.found.Removed) > 0 || len(s.errs) > 0 {
		t.Errorf("the sweep says %+v, %v; want all of %q alive", s.found, s.errs, want)
	}
}
