package escape

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// delegated puts the user's runs into a group of cgroup v2 that is the user's.
func (a *allotted) delegated(t *testing.T) {
	t.Helper()
	testkit.Requires(t, "cgroup2")
	// One for each run: a group with groups of its own below takes no process.
	prefix := "/sys/fs/cgroup/delegated-" + strconv.Itoa(os.Getpid()) + "-"
	group := prefix + "$$"
	a.setup += "mkdir " + group + "\nfor f in . cgroup.procs cgroup.subtree_control cgroup.threads; do chown " +
		strconv.Itoa(a.who.UID) + " " + group + "/$f; done\necho $$ >" + group + "/cgroup.procs\n"
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory +pids +cpu"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		testkit.Eventually(t, prefix+"* are removed", func() bool {
			groups, _ := filepath.Glob(prefix + "*")
			var dirs []string
			for _, group := range groups {
				filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
					if err == nil && d.IsDir() {
						dirs = append(dirs, path)
					}
					return nil
				})
			}
			for i := range dirs {
				os.Remove(dirs[len(dirs)-1-i])
			}
			return len(dirs) == 0
		})
	})
}

// In a group of the user's own its limits hold a sandbox with another id, which
// must get into it, and nobody else's process comes in by that.
func TestGroupsOfAnIDOfItsOwn(t *testing.T) {
	a := span(t, 8)
	a.delegated(t)
	run := func(script string, flags ...string) testkit.Output {
		return testkit.Run(t, a.opts(t), append(append(flags, "--host-id", "own"), "--", "sh", "-c", script)...)
	}
	o := run("cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max", "--memory", "64m", "--pids-limit", "17")
	if whose(t, o); o.Exit != 0 || o.Stdout != "67108864\n17\n" {
		t.Errorf("exit %d: %s%s", o.Exit, o.Stdout, o.Stderr)
	}
	for _, limit := range []string{"memory", "pids", "cpus"} {
		if by := o.Result.Limits[limit].EnforcedBy; by != result.ByCgroup2 {
			t.Errorf("%s is held by %s", limit, by)
		}
	}
	if o := run("exec python3 -c 'b\"x\" * (200 << 20)'", "--memory", "64m"); o.Exit != 137 || o.Result.Outcome != result.Memory {
		t.Errorf("exit %d, %s: %s", o.Exit, o.Result.Outcome, o.Stderr)
	}
	if o := run("trap '' TERM; setsid sleep 1000 & sleep 1000", "--timeout", "500ms"); o.Exit != 124 || o.Result.Outcome != result.Timeout {
		t.Errorf("exit %d, %s: %s", o.Exit, o.Result.Outcome, o.Stderr)
	}

	l := hold(t, a.opts(t), "true", "--host-id", "own", "--timeout", "120s")
	text, err := os.ReadFile("/proc/" + strconv.Itoa(l.program) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(string(text), "0::")
	box := filepath.Join("/sys/fs/cgroup", strings.TrimSpace(path))
	if filepath.Base(box) != "box" {
		t.Fatalf("the program is in %s", box)
	}
	for _, dir := range []string{box, filepath.Dir(box)} {
		for _, uid := range []string{"4321", strconv.Itoa(hostUID(t, l.program, "Uid"))} {
			cmd := exec.Command("setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "sh", "-c", "echo $$ >"+dir+"/cgroup.procs")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") && !strings.Contains(string(out), "I/O error") {
				t.Errorf("user %s moved into %s: %v %s", uid, dir, err, out)
			}
		}
	}
	l.release()
	if o := l.Wait(); o.Exit != 0 {
		t.Errorf("exit %d: %s", o.Exit, o.Stderr)
	}
}
