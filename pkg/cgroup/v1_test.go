package cgroup

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestV1Shape(t *testing.T) {
	tr := needTree(t, 1)
	needRoot(t)
	g := create(t, testLimits)
	if g.InitFD() != -1 || g.BoxFD() != -1 {
		t.Errorf("InitFD %d, BoxFD %d on v1", g.InitFD(), g.BoxFD())
	}
	want := map[string]string{}
	for _, ctrl := range []string{"memory", "pids", "cpu", "cpuacct"} {
		p, c := tr.parentV1(ctrl, "")
		if c != nil {
			t.Skipf("SKIP(want the v1 %s controller: %s)", ctrl, c.what)
		}
		want[ctrl] = p + "/" + prefix + g.opt.ID
	}
	got := map[string]string{}
	for _, v := range g.ViewPaths() {
		got[v.Name] = v.HostPath
	}
	if p, c := tr.parentV1(cpuset, ""); c == nil {
		want[cpuset] = p + "/" + prefix + g.opt.ID
	}
	if len(got) != len(want) {
		t.Errorf("views %v, want %v", got, want)
	}
	for name, path := range want {
		if got[name] != path {
			t.Errorf("view %s: %q, want %q", name, got[name], path)
		}
	}
	if len(g.TaskFDs()) != len(want) {
		t.Errorf("%d tasks descriptors for %d hierarchies", len(g.TaskFDs()), len(want))
	}
	out, err := childCommand(g, "where").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range want {
		suffix := strings.TrimPrefix(path, tr.v1Mount(name).point)
		if s := parseSelf(string(out)).v1(name); !strings.HasSuffix(s, suffix) {
			t.Errorf("the program's %s group is %q, want …%q", name, s, suffix)
		}
	}
}

func TestReadOnlyMount(t *testing.T) {
	needRoot(t)
	needGroups(t)
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=readonly:"+testID())
	c.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.HasPrefix(string(out), "memory limit: the cgroup mount is read-only: mkdir /sys/fs/cgroup/") ||
		!strings.Contains(string(out), "\n--allow-degraded memory\n") {
		t.Errorf("got %s", out)
	}
}

func TestOrdinaryUserIsRefused(t *testing.T) {
	needRoot(t)
	needGroups(t)
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=create:"+testID())
	c.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.HasPrefix(string(out), "memory limit: ") || !strings.Contains(string(out), "permission denied") ||
		!strings.HasSuffix(string(out), "\n--allow-degraded memory\n") {
		t.Errorf("got %s", out)
	}
}

// On v1 a quota wider than that of a group above is EINVAL: then that group holds.
func TestV1TighterParent(t *testing.T) {
	tr := needTree(t, 1)
	needRoot(t)
	parent := "/" + prefix2 + testID()
	for _, ctrl := range []string{"cpu", "cpuacct"} {
		m := tr.v1Mount(ctrl)
		if m == nil || tr.self.v1(ctrl) != "/" {
			t.Skipf("SKIP(want own %s group at the top, have %q)", ctrl, tr.self.v1(ctrl))
		}
		if err := unix.Mkdir(m.point+parent, 0o755); err != nil && err != unix.EEXIST {
			t.Fatal(err)
		}
		defer unix.Rmdir(m.point + parent)
	}
	if err := writeAt(unix.AT_FDCWD, tr.v1Mount("cpu").point+parent+"/cpu.cfs_quota_us", "50000"); err != nil {
		t.Fatal(err)
	}
	g, err := Create(Options{ID: testID(), Parent: parent}, Limits{CPUQuotaUS: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if g.EnforcedBy(CPU) != "cgroup1" {
		t.Errorf("EnforcedBy = %s", g.EnforcedBy(CPU))
	}
	if n := g.Notes(); len(n) != 1 || n[0] != "the cpu limit of "+tr.v1Mount("cpu").point+parent+" is tighter and holds instead" {
		t.Errorf("notes %q", n)
	}
}

const prefix2 = "sgparent-"
