package leftovers

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// small is a directory of who's on a file system of its own that is soon full.
func small(t *testing.T, who testkit.Who) string {
	t.Helper()
	dir := testkit.Dir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=128k,mode=0755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("the destination is in use: %v", err)
		}
	})
	if err := os.Chown(dir, who.UID, who.GID); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A full disk costs what did not fit, says so, and leaves no half of a file.
func TestNothingIsLeftOnAFullDisk(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		dir := small(t, who)
		before := look(t, dir)
		o := testkit.Run(t, testkit.Opts{Who: who}, "--timeout", "300s", "--out", dir, "--", "sh", "-c", busy+"echo small >/out/a; head -c 300000 /dev/zero >/out/b")
		if o.Exit != 125 || o.Result.Outcome != result.Exited || o.Result.ExitCode != 0 || !strings.Contains(o.Stderr, "no space left on device") {
			t.Errorf("exit %d, outcome %s %d, %s", o.Exit, o.Result.Outcome, o.Result.ExitCode, o.Stderr)
		}
		if names := names(t, dir); !slices.Equal(names, []string{"a"}) {
			t.Errorf("--out has %q, want a", names)
		}
		if err := os.Remove(dir + "/a"); err != nil {
			t.Fatal(err)
		}
		nothing(t, before, o.PID, dir)

		// No room for the result either.
		if err := os.WriteFile(dir+"/full", make([]byte, 128<<10), 0o644); err == nil {
			if err := os.WriteFile(dir+"/full2", make([]byte, 4<<10), 0o644); err == nil {
				t.Fatal("the disk is not full")
			}
		}
		before = look(t, dir)
		o = testkit.Run(t, testkit.Opts{Who: who, Setup: withoutResult}, "--timeout", "300s", "--result", dir+"/result.json", "--", "sh", "-c", busy)
		if o.Exit != 125 || !strings.Contains(o.Stderr, "no space left on device") {
			t.Errorf("exit %d, %s", o.Exit, o.Stderr)
		}
		nothing(t, before, o.PID, dir)
	})
}

// names are those in a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestNothingIsLeftAfterManyInARow(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		before := look(t)
		var supervisors []int
		for i := range 200 {
			o := testkit.Run(t, testkit.Opts{Who: who}, "--", "sh", "-c", "exit 7")
			if o.Exit != 7 {
				t.Fatalf("run %d: exit %d, %s", i, o.Exit, o.Stderr)
			}
			supervisors = append(supervisors, o.PID)
		}
		for _, path := range testkit.CgroupsLeft(t, supervisors...) {
			t.Errorf("left behind: %s", path)
		}
		nothing(t, before, 0)
	})
}

// swept is what "sandglass sweep --json" prints.
type swept struct {
	Schema  int
	Removed []struct{ Kind, Path string }
	Live    int
	Error   string
}

// sweep runs it and gives the removed control groups.
func sweep(t *testing.T, who testkit.Who) (s swept, groups []string) {
	t.Helper()
	return readSwept(t, testkit.Run(t, testkit.Opts{Who: who, Verb: "sweep"}, "--json"))
}

func readSwept(t *testing.T, o testkit.Output) (s swept, groups []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.Stdout), &s); err != nil || o.Exit != 0 || o.Stderr != "" || s.Schema != 1 || s.Error != "" {
		t.Fatalf("sweep: exit %d, %v, %q %q", o.Exit, err, o.Stdout, o.Stderr)
	}
	for _, r := range s.Removed {
		if r.Kind == "cgroup" {
			groups = append(groups, r.Path)
		}
	}
	return s, groups
}

// Fifty start, run and end at once while others sweep all the time: no live run
// loses anything, and in the end nothing is left.
func TestNothingIsLeftOfManyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		const many = 50
		before := look(t)
		in, release, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		var runs, sweeps []*testkit.Process
		for range many {
			runs = append(runs, testkit.Start(t, testkit.Opts{Who: who, Stdin: in}, "-i", "--timeout", "300s", "--", "sh", "-c", "echo ready; cat; exit 9"))
			sweeps = append(sweeps, testkit.Start(t, testkit.Opts{Who: who, Verb: "sweep"}, "--json"))
		}
		for _, p := range runs {
			p.WaitLine("ready")
		}
		s, _ := sweep(t, who)
		if who.Limited() && s.Live < many {
			t.Errorf("sweep sees %d live runs, want %d", s.Live, many)
		}
		for _, p := range sweeps {
			readSwept(t, p.Wait())
		}
		for _, p := range runs {
			if who.Limited() && len(testkit.CgroupsOf(p.PID())) == 0 {
				t.Errorf("the group of live %d is gone", p.PID())
			}
		}
		release.Close()
		for _, p := range runs {
			if o := p.Wait(); o.Exit != 9 {
				t.Errorf("exit %d, %s", o.Exit, o.Stderr)
			}
		}
		for _, p := range runs {
			nothing(t, before, p.PID())
		}
	})
}

// The verb removes what is left of the dead, says so, and leaves the living.
func TestSweepRemovesTheDeadAlone(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		work := testkit.Dir(t)
		before := look(t, work)
		live := testkit.Start(t, testkit.Opts{Who: who, Dir: work}, "--timeout", "300s", "--", "sh", "-c", "echo ready; sleep 1000")
		live.WaitLine("ready")
		living := testkit.CgroupsOf(live.PID())
		left := killThree(t, who, work)
		if who.Limited() && (len(left) == 0 || len(living) == 0) {
			t.Fatalf("there are no groups to look at: %q, %q", left, living)
		}
		s, groups := sweep(t, who)
		for tries := 0; tries < 5 && slices.ContainsFunc(left, func(path string) bool { return !slices.Contains(groups, path) }); tries++ {
			left = killThree(t, who, work) // the start of somebody else's run has come first
			s, groups = sweep(t, who)
		}
		for _, path := range left {
			_, err := os.Stat(path)
			if err == nil || !slices.Contains(groups, path) {
				t.Errorf("%s is there, or not in %q", path, groups)
			}
		}
		for _, path := range living {
			if _, err := os.Stat(path); err != nil || slices.Contains(groups, path) {
				t.Errorf("the live %s was swept", path)
			}
		}
		if who.Limited() && s.Live < 1 {
			t.Error("sweep sees no live run")
		}
		live.Signal(os.Interrupt)
		if o := live.Wait(); o.Exit != 130 || o.Result.Outcome != result.Canceled {
			t.Errorf("the live run: exit %d, %s", o.Exit, o.Stderr)
		}
		gone(t, before, work)
		nothing(t, before, live.PID(), work)
	})
}

// killThree kills the supervisors of three runs, and tells the groups that they left.
func killThree(t *testing.T, who testkit.Who, work string) (left []string) {
	t.Helper()
	var killed []*testkit.Process
	for range 3 {
		p := testkit.Start(t, testkit.Opts{Who: who, Dir: work}, "--timeout", "300s", "--", "sh", "-c", busy+"echo ready; sleep 1000")
		p.WaitLine("ready")
		killed, left = append(killed, p), append(left, testkit.CgroupsOf(p.PID())...)
	}
	for _, p := range killed { // each start has swept what there was
		p.Kill()
		p.Wait()
	}
	return left
}

// withoutResult takes the testkit's own --result-fd away.
func withoutResult(cmd *exec.Cmd) {
	if i := slices.Index(cmd.Args, "--result-fd"); i >= 0 {
		cmd.Args = slices.Delete(cmd.Args, i, i+2)
	}
}
