package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/pkg/doctor/causes"
)

const (
	debianMounts = `24 30 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
30 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
36 24 0:31 / /sys/fs/pstore rw,nosuid,nodev,noexec,relatime shared:10 - pstore pstore rw
`
	hybridMounts = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	hybridSelf = "9:name=systemd:/\n8:pids:/\n7:blkio:/\n4:memory:/api/79a5\n2:cpuacct:/\n1:cpu:/\n0::/\n"

	// Docker on v1 without a cgroup namespace: read-only binds of its own groups.
	dockerMounts = `700 690 0:60 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755
701 700 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid,nodev,noexec,relatime master:15 - cgroup cgroup rw,cpu,cpuacct
702 700 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:16 - cgroup cgroup rw,memory
703 700 0:36 /docker/abc /sys/fs/cgroup/pids ro,nosuid,nodev,noexec,relatime master:17 - cgroup cgroup rw,pids
`
	dockerSelf = "11:cpu,cpuacct:/docker/abc\n8:pids:/docker/abc\n4:memory:/docker/abc/inner\n0::/docker/abc\n"

	wslMounts = `74 70 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755
75 74 0:28 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw,nsdelegate
76 74 0:29 / /sys/fs/cgroup/cpuset rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpuset
77 74 0:30 / /sys/fs/cgroup/cpu rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpu
79 74 0:32 / /sys/fs/cgroup/blkio rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,blkio
80 74 0:33 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,memory
`
	wslSelf = "4:memory:/\n3:blkio:/\n2:cpu:/\n1:cpuset:/\n0::/\n"
)

func TestNewTree(t *testing.T) {
	for _, c := range []struct {
		name, mounts, self string
		version            int
		tree               string
		parents            map[string]string // of a v1 controller
		v2                 string            // own group's directory
	}{
		{"debian 12, user session", debianMounts, "0::/user.slice/user-1000.slice/session-3.scope\n", 2, "v2", nil,
			"/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope"},
		{"hybrid, own memory group", hybridMounts, hybridSelf, 1, "hybrid", map[string]string{
			"memory": "/sys/fs/cgroup/memory/api/79a5", "pids": "/sys/fs/cgroup/pids", "cpu": "/sys/fs/cgroup/cpu",
			"cpuacct": "/sys/fs/cgroup/cpuacct", "blkio": "/sys/fs/cgroup/blkio"}, "/sys/fs/cgroup/unified"},
		{"docker on v1", dockerMounts, dockerSelf, 1, "v1", map[string]string{
			"memory": "/sys/fs/cgroup/memory/inner", "pids": "/sys/fs/cgroup/pids",
			"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
			"blkio": "!the blkio controller is not on v1, where this host keeps the others"}, ""},
		{"docker on v2, private namespace", "900 1 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n", "0::/\n", 2, "v2", nil, "/sys/fs/cgroup"},
		{"docker on v2, bind of its own group", "900 1 0:30 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/abc/x\n", 2, "v2", nil, "/sys/fs/cgroup/x"},
		{"another's bind with a longer name", "900 1 0:30 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/abc\n", 2, "v2", nil,
			"!own group /docker/abc is not below /docker/ab, which is all that /sys/fs/cgroup shows"},
		{"outside the namespace", "900 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/../other\n", 2, "v2", nil,
			`!own group "/../other" cannot be reached below /sys/fs/cgroup`},
		{"removed group", "900 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/x (deleted)\n", 2, "v2", nil,
			`!own group "/x (deleted)" cannot be reached below /sys/fs/cgroup`},
		{"wsl2", wslMounts, wslSelf, 1, "hybrid", map[string]string{
			"memory": "/sys/fs/cgroup/memory", "pids": "!the pids controller is not on v1, where this host keeps the others"}, "/sys/fs/cgroup/unified"},
		{"controller that is not mounted", wslMounts, wslSelf + "9:pids:/\n", 1, "hybrid", map[string]string{
			"pids": "!no v1 hierarchy with the pids controller is mounted below /sys/fs/cgroup"}, "/sys/fs/cgroup/unified"},
		{"v2 mounted over v1", hybridMounts + "99 31 0:50 / /sys/fs/cgroup rw - cgroup2 none rw\n", "0::/\n", 2, "v2", nil, "/sys/fs/cgroup"},
		{"hidden by a tmpfs", hybridMounts + "99 31 0:50 / /sys/fs/cgroup rw - tmpfs none rw\n", hybridSelf, 0, "none", nil, ""},
		{"mounted elsewhere only", "9 1 0:30 / /cg rw - cgroup2 cgroup rw\n", "0::/\n", 0, "none", nil, ""},
		{"no cgroup", "30 1 254:1 / / rw - ext4 /dev/vda1 rw\n", "", 0, "none", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(defaultRoot, c.mounts, parseSelf(c.self))
			if tr.version != c.version || tr.name != c.tree {
				t.Fatalf("version %d, tree %q; want %d, %q", tr.version, tr.name, c.version, c.tree)
			}
			for ctrl, want := range c.parents {
				if got := orCause(tr.parentV1(ctrl, "")); got != want {
					t.Errorf("%s: %q, want %q", ctrl, got, want)
				}
			}
			if c.v2 != "" {
				if got := orCause(tr.v2.below(tr.self.v2)); got != c.v2 {
					t.Errorf("v2: %q, want %q", got, c.v2)
				}
			}
		})
	}
}

func orCause(s string, c *cause) string {
	if c != nil {
		return "!" + c.what
	}
	return s
}

func TestMountinfoEscapes(t *testing.T) {
	m := parseMountinfo(`9 1 0:30 /a\040b /cg/x\134y rw - cgroup cgroup rw,memory`+"\n", "/cg")
	if len(m) != 1 || m[0].point != `/cg/x\y` || m[0].root != "/a b" || m[0].ctrls != "rw,memory" {
		t.Errorf("got %+v", m)
	}
}

func TestMountinfoGarbage(t *testing.T) {
	for _, text := range []string{"", "\n", "/cg", " - cgroup2 /cg", "9 1 0:30 / /cg rw - \n", "9 1 0:30 / /cg rw cgroup2 cgroup2 rw\n"} {
		if m := parseMountinfo(text, "/cg"); len(m) != 0 {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

// The short way must see what mountinfo says.
func TestStandardTreeAgrees(t *testing.T) {
	own, err := readPath("/proc/self/cgroup", maxMountinfo)
	if err != nil {
		t.Fatal(err)
	}
	quick := standardTree(defaultRoot, parseSelf(own))
	if quick == nil {
		t.Skip("SKIP(want the standard cgroup layout and the first cgroup namespace)")
	}
	mounts, err := readPath("/proc/self/mountinfo", maxMountinfo)
	if err != nil {
		t.Fatal(err)
	}
	full := newTree(defaultRoot, mounts, parseSelf(own))
	if quick.version != full.version {
		t.Fatalf("version %d; mountinfo says %d", quick.version, full.version)
	}
	if full.version != 1 {
		return
	}
	for _, ctrl := range v1Names {
		if q, f := orCause(quick.parentV1(ctrl, "")), orCause(full.parentV1(ctrl, "")); q != f {
			t.Errorf("%s: %q, mountinfo says %q", ctrl, q, f)
		}
	}
}

// fakeV2 is a directory that claims to be a v2 tree, with a group /own.
func fakeV2(t *testing.T, files map[string]string) Options {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "cgroup")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(filepath.Join(root, name), text)
	}
	o := Options{ID: "x", Root: root, Mountinfo: filepath.Join(dir, "mountinfo"), ProcSelfCgroup: filepath.Join(dir, "self")}
	write(o.Mountinfo, "9 1 0:30 / "+root+" rw - cgroup2 cgroup2 rw\n")
	write(o.ProcSelfCgroup, "0::/own\n")
	return o
}

// inContainer are the files of a mount whose top is not the real root.
func inContainer(more ...string) map[string]string {
	m := map[string]string{
		"cgroup.events": "populated 1\nfrozen 0\n", "own/cgroup.events": "populated 1\nfrozen 0\n",
		"own/cgroup.type": "domain\n", "own/cgroup.controllers": "cpu memory pids\n",
		"own/cgroup.subtree_control": "", "own/cgroup.procs": "1\n77\n",
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func TestRefusals(t *testing.T) {
	memory := Limits{MemoryMax: 1 << 20}
	for _, c := range []struct {
		name   string
		files  map[string]string
		limits Limits
		parent string
		allow  string
		what   string // ROOT stands for the mount
		hint   string // a part of any hint
	}{
		{"threaded", inContainer("own/cgroup.type", "threaded\n"), memory, "", "",
			`memory limit: cgroup ROOT/own is threaded (cgroup.type is "threaded"): no memory limit can be set below it`, "--allow-degraded memory"},
		{"frozen", inContainer("own/cgroup.events", "populated 1\nfrozen 1\n"), memory, "", "",
			"memory limit: cgroup ROOT/own is frozen", "echo 0 > ROOT/own/cgroup.freeze"},
		{"no such controller", inContainer("own/cgroup.controllers", "memory pids\n"), Limits{MemoryMax: 1 << 20, CPUQuotaUS: 5000}, "", "memory",
			"cpu limit: the cpu controller is not available in ROOT/own (available: memory pids)", "Delegate=cpu cpuset io memory pids"},
		{"other processes", inContainer(), memory, "", "",
			"memory limit: other processes are in own cgroup ROOT/own, so no controller can be enabled in it", "--cgroup-parent /own"},
		{"all limits in one message", inContainer(), Limits{MemoryMax: 1 << 20, PidsMax: 9, CPUQuotaUS: 5000}, "", "",
			"memory, pids, cpu limits: other processes are in own cgroup ROOT/own, so no controller can be enabled in it", "--allow-degraded memory,pids,cpu"},
		{"parent that is not there", inContainer(), memory, "/ci", "",
			"cgroup parent ROOT/ci does not exist", "mkdir -p ROOT/ci"},
		{"parent that is not there, degraded", inContainer(), memory, "/ci", Memory, "cgroup parent ROOT/ci does not exist", "mkdir -p ROOT/ci"},
		{"parent that is a file", inContainer(), memory, "/own/cgroup.procs", Memory, "cgroup parent ROOT/own/cgroup.procs does not exist", "mkdir -p"},
		{"not delegated", map[string]string{"cgroup.events": "", "own/x": ""}, memory, "", "",
			"memory limit: own cgroup ROOT/own is not delegated to uid UID (ROOT/own/cgroup.procs: no such file or directory)", causes.OwnGroup()[0]},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := fakeV2(t, c.files)
			o.HostUID, o.Parent = os.Geteuid(), c.parent
			if c.allow != "" {
				o.Allow = map[string]bool{c.allow: true}
			}
			g, err := Create(o, c.limits)
			if err == nil {
				g.Close()
				t.Fatal("no error")
			}
			checkRefusal(t, err, fill(c.what, o), fill(c.hint, o))
		})
	}
}

func fill(s string, o Options) string {
	return strings.NewReplacer("ROOT", o.Root, "UID", strings.TrimSpace(itoa(os.Geteuid()))).Replace(s)
}

// With everything allowed there is a group that holds nothing and says so.
func TestDegraded(t *testing.T) {
	o := fakeV2(t, inContainer())
	o.HostUID, o.Allow = os.Geteuid(), map[string]bool{Memory: true, Pids: true}
	g, err := Create(o, Limits{MemoryMax: 1 << 20, PidsMax: 9})
	if err != nil {
		t.Fatal(err)
	}
	if g.EnforcedBy(Memory) != "none" || g.EnforcedBy(Pids) != "none" {
		t.Error("something is said to be enforced")
	}
	if n := g.Notes(); len(n) != 2 || !strings.HasPrefix(n[0], "memory limit is not held: other processes are in") {
		t.Errorf("notes %q", n)
	}
	g.Close()
}

func TestNoGroupAtAll(t *testing.T) {
	o := fakeV2(t, nil)
	os.WriteFile(o.Mountinfo, []byte("30 1 254:1 / / rw - ext4 /dev/vda1 rw\n"), 0o644)
	_, err := Create(o, Limits{PidsMax: 9})
	checkRefusal(t, err, "pids limit: no cgroup file system is mounted below "+o.Root, "--allow-degraded pids")
	o.Allow = map[string]bool{Pids: true}
	g, err := Create(o, Limits{PidsMax: 9})
	if err != nil {
		t.Fatal(err)
	}
	if g.InitFD() != -1 || g.BoxFD() != -1 || len(g.TaskFDs()) != 0 || len(g.ViewPaths()) != 0 {
		t.Error("there are descriptors")
	}
	if err := g.Kill(); err != ErrNoGroup {
		t.Errorf("Kill: %v, want ErrNoGroup", err)
	}
	if _, err := g.CPUUsage(); err != ErrNoUsage {
		t.Errorf("CPUUsage: %v, want ErrNoUsage", err)
	}
	want := Stats{-1, -1, -1, false, -1, -1, -1, -1, -1, -1, -1, -1}
	if s, err := g.Stats(); err != nil || s != want {
		t.Errorf("Stats = %+v, %v", s, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestDescribeFake(t *testing.T) {
	o := fakeV2(t, inContainer("own/cgroup.procs", itoa(os.Getpid())+"\n"))
	h, err := Describe(o)
	if err != nil {
		t.Fatal(err)
	}
	if h.Tree != "v2" || h.Version != 2 || !h.Moves || len(h.Limits) != 4 {
		t.Fatalf("%+v", h)
	}
	for i, limit := range []string{Memory, Pids, CPU} {
		if f := h.Limits[i]; f.Limit != limit || f.Problem != "" || f.Parent != o.Root+"/own" {
			t.Errorf("%+v", f)
		}
	}
	if p := h.Limits[3].Problem; p != "the io controller is not available in "+o.Root+"/own (available: cpu memory pids)" {
		t.Errorf("io: %q", p)
	}
}
