package escape

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// weaker is a build in which init does one thing less than it was told, and what
// the supervisor must say of the program.
type weaker struct {
	name, want string
	edits      []testkit.Edit
}

// weakers has one for each layer that the result lists as enforced.
func weakers(t *testing.T) []weaker {
	t.Helper()
	list := []weaker{
		{"capabilities", "CapInh of the program is", []testkit.Edit{{File: "pkg/boxinit/child.go", Old: "	c.ClearCaps(\"capabilities\")\n"}}},
		{"bounding set", "CapBnd of the program is", []testkit.Edit{{File: "pkg/boxinit/child.go", Old: "range uintptr(lastCap + 1)", New: "range uintptr(0)"}}},
		{"seccomp", `Seccomp of the program is "0", not "2"`, []testkit.Edit{{File: "pkg/boxinit/child.go", Old: "	c.Seccomp(\"seccomp\", cfg.Seccomp)\n"}}},
		{"rlimits", "of the program is", []testkit.Edit{{File: "pkg/boxinit/child.go", Old: `c.Rlimit("rlimits", int(r.Resource), r.Soft, r.Hard)`, New: "_ = r"}}},
		{"mount read-only", "the mount at / is not read-only", []testkit.Edit{{File: "pkg/mount/apply.go", Old: "return setattr(b.root, o.Attr, true)", New: "return setattr(b.root, wire.NoSuid, true)"}}},
		{"mount read-only, later", "the mount at / is not read-only", []testkit.Edit{{File: "pkg/boxinit/steps.go", Old: "func enterWorkdir(b *box) error {\n",
			New: "func enterWorkdir(b *box) error {\n	unix.Nanosleep(&unix.Timespec{Nsec: 3e8}, nil)\n	unix.MountSetattr(unix.AT_FDCWD, \"/\", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})\n"}}},
		{"mount of /proc", "has not the option hidepid=ptraceable", []testkit.Edit{{File: "pkg/mount/apply.go", Old: `return b.filesystem(o, "proc", options(o.Data))`,
			New: `return b.filesystem(o, "proc", nil)`}}},
		{"net namespace", "the net namespace is the host's own", []testkit.Edit{{File: "pkg/launch/spawn.go", Old: " | unix.CLONE_NEWNET"},
			{File: "pkg/boxinit/steps.go", Old: "if !b.cfg.Loopback {", New: "if true {"},
			{File: "pkg/boxinit/quota.go", Old: `"../net/core/tstamp_allow_data", 0`, New: `"max_user_namespaces", 0`}}},
		{"cgroup namespace", "the cgroup namespace is the host's own", []testkit.Edit{{File: "pkg/boxinit/child.go",
			Old: `c.Add("cgroup namespace", unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)`, New: `c.Add("cgroup namespace", unix.SYS_UNSHARE, 0)`}}},
	}
	switch testkit.CgroupVersion("pids") {
	case "cgroup1":
		list = append(list, weaker{"place in the cgroup", "the program is not in its cgroup", []testkit.Edit{{File: "pkg/boxinit/child.go",
			Old: "c.Write(\"join cgroup\", int(fd), []byte(\"0\"))", New: "_ = fd"}}},
			weaker{"pids limit", `pids limit: pids.max is "65", not "64"`, []testkit.Edit{{File: "pkg/cgroup/v1.go", Old: "d.set(\"pids.max\", strconv.FormatInt(g.limits.PidsMax, 10))",
				New: "d.set(\"pids.max\", strconv.FormatInt(g.limits.PidsMax+1, 10))"}}})
	case "cgroup2":
		list = append(list, weaker{"place in the cgroup", "the program is not in its cgroup", []testkit.Edit{{File: "pkg/boxinit/child.go",
			Old: "cgroup = int(b.cfg.Box)", New: "cgroup = -1"}}},
			weaker{"pids limit", `pids limit: pids.max is "65", not "64"`, []testkit.Edit{{File: "pkg/cgroup/v2.go", Old: "g.box.set(\"pids.max\", strconv.FormatInt(g.limits.PidsMax, 10))",
				New: "g.box.set(\"pids.max\", strconv.FormatInt(g.limits.PidsMax+1, 10))"}}})
	}
	return list
}

// A program that is confined less than planned is killed before it gets any
// further, and the run is our failure, whatever the program does.
func TestReadBackFindsMutants(t *testing.T) {
	testkit.Requires(t, "root", "go", "cgroup-pids")
	for _, w := range weakers(t) {
		t.Run(w.name, func(t *testing.T) {
			command := testkit.Mutant(t, w.edits...)
			file := filepath.Join(testkit.Dir(t), "result")
			// It would go on for the whole timeout.
			out, _ := exec.Command(command, "run", "--result", file, "--timeout", "20s", "--", "sh", "-c", "while :; do :; done").CombinedOutput()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var r struct {
				Outcome string `json:"outcome"`
				Exit    int    `json:"exit_code"`
				Error   string `json:"error"`
				WallMS  int64  `json:"wall_ms"`
			}
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			if r.Outcome != "failed" || r.Exit != 125 || !strings.Contains(r.Error, w.want) {
				t.Errorf("outcome %q, exit %d, %q; want failed, 125, %q", r.Outcome, r.Exit, r.Error, w.want)
			}
			if r.WallMS >= 20_000 {
				t.Error("the program ran to its timeout")
			}
		})
	}
}

// What the result says of the cgroup is what held while the program ran, not what
// the kill at its end made of it.
func TestReadBackIsOfTheLiveProgram(t *testing.T) {
	testkit.Requires(t, "cgroup-pids", "cgroup-cpu")
	o := testkit.Run(t, testkit.Opts{Who: testkit.AsRoot(t)}, "--timeout", "1s", "--pids-limit", "33", "--cpus", "0.5", "--", "sleep", "100")
	if o.Result.Outcome != "timeout" {
		t.Fatalf("%+v", o.Result)
	}
	want := map[string]string{"pids.max": "33", "cpu.cfs_quota_us": "50000"}
	if o.Result.Limits["cpus"].EnforcedBy == "cgroup2" {
		want = map[string]string{"pids.max": "33", "cpu.max": "50000 100000"}
	}
	i := slices.IndexFunc(o.Result.Layers, func(l result.Layer) bool { return l.Name == "cgroup" })
	if i < 0 {
		t.Fatalf("no layer cgroup: %+v", o.Result.Layers)
	}
	for file, value := range want {
		if got := o.Result.Layers[i].ReadBack[file]; got != value {
			t.Errorf("%s is %q, want %q", file, got, value)
		}
	}
}
