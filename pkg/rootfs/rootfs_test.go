package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/pkg/wire"
)

func input() Input {
	return Input{
		Image: "host", UID: 65534, GID: 65534, Disk: 1 << 20, DiskInodes: 100, Proc: true, Workdir: Work,
		Code:   &Code{Name: "main.py", Content: []byte("x"), Size: 1},
		Cgroup: []View{{HostPath: "/sys/fs/cgroup/x", Name: "memory"}},
		Mounts: []Bind{
			{Source: Source{Path: "/b", Dir: true}, Target: "/data/sub", Write: true},
			{Source: Source{Path: "/a", Dir: true}, Target: "/data"},
			{Source: Source{Path: "/f"}, Target: "/tmp/file"},
		},
	}
}

// from makes a directory the image, as the planner of a run pins it.
func from(t *testing.T, in *Input, dir string) {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	in.Image = real
	if in.Root, _, err = Pin(real); err != nil {
		t.Fatal(err)
	}
}

func mustPlan(t *testing.T, in Input) []Item {
	t.Helper()
	items, err := Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func index(items []Item, kind wire.Kind, target string) int {
	return slices.IndexFunc(items, func(it Item) bool { return it.Kind == kind && it.Target == target })
}

// TestOrder: the root first, the pivot last, everything of the host before the
// freeze that makes it read-only, everything writable after it.
func TestOrder(t *testing.T) {
	items := mustPlan(t, input())
	if items[0].Kind != wire.OpRoot || items[len(items)-1].Kind != wire.OpPivot {
		t.Fatalf("begins with %s, ends with %s", items[0].Kind, items[len(items)-1].Kind)
	}
	freeze := index(items, wire.OpFreeze, "")
	if want := wire.ReadOnly | wire.NoSuid | wire.NoDev; items[freeze].Attr != want {
		t.Errorf("freeze has %v, want %v", items[freeze].Attr, want)
	}
	writable := []string{"/tmp", "/work", "/out", "/home/sandbox", "/dev/shm", "/data/sub", "/tmp/file", "/data"}
	for i, it := range items {
		switch {
		case it.Kind == wire.OpBind && i < freeze && slices.Contains(writable, it.Target):
			t.Errorf("%s is frozen", it.Target)
		case it.Kind == wire.OpBind && i > freeze && !slices.Contains(writable, it.Target) &&
			!strings.HasPrefix(it.Target, "/dev/") && it.Attr&wire.ReadOnly == 0:
			t.Errorf("%s is mounted after the freeze and writable", it.Target)
		}
	}
}

// TestWritable: the scratch is one tmpfs with the asked size, and only -v with
// rw is writable beside it.
func TestWritable(t *testing.T) {
	items := mustPlan(t, input())
	var tmpfs []Item
	for _, it := range items {
		if it.Kind == wire.OpTmpfs {
			tmpfs = append(tmpfs, it)
		}
		if it.Kind == wire.OpInner && it.Target != "/proc/sys" && !strings.HasPrefix(it.Source, "/tmp/") {
			t.Errorf("%s is bound from %s, not from the scratch", it.Target, it.Source)
		}
	}
	if len(tmpfs) != 1 || tmpfs[0].Size != 1<<20 || tmpfs[0].Inodes != 100 || tmpfs[0].Attr != wire.NoSuid|wire.NoDev {
		t.Errorf("scratch: %+v", tmpfs)
	}
	for target, want := range map[string]wire.Attr{
		"/data":     wire.ReadOnly | wire.NoSuid | wire.NoDev,
		"/data/sub": wire.NoSuid | wire.NoDev,
		"/tmp/file": wire.ReadOnly | wire.NoSuid | wire.NoDev,
	} {
		if it := items[index(items, wire.OpBind, target)]; it.Attr != want {
			t.Errorf("%s has %v, want %v", target, it.Attr, want)
		}
	}
}

// TestMountPoints: a target below another mount is never made: it would be
// made in the caller's own directory.
func TestMountPoints(t *testing.T) {
	items := mustPlan(t, input())
	if index(items, wire.OpDir, "/data") < 0 {
		t.Error("/data is not made")
	}
	if index(items, wire.OpDir, "/data/sub") >= 0 {
		t.Error("/data/sub would be made inside /data")
	}
	outer, nested := index(items, wire.OpBind, "/data"), index(items, wire.OpBind, "/data/sub")
	if outer > nested {
		t.Error("/data covers /data/sub")
	}
}

// TestNoHostState: nothing of the host's state is in the host view.
func TestNoHostState(t *testing.T) {
	in := input()
	in.Mounts, in.Cgroup = nil, nil
	for _, it := range mustPlan(t, in) {
		if it.Kind != wire.OpBind {
			continue
		}
		for _, bad := range []string{"/home", "/root", "/var", "/run", "/sys", "/boot", "/proc", "/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/hostname", "/etc/machine-id", "/etc/ssh"} {
			if it.Source == bad || strings.HasPrefix(it.Source, bad+"/") {
				t.Errorf("%s of the host is mounted on %s", it.Source, it.Target)
			}
		}
		if it.Source == "/" || it.Source == "/etc" || it.Source == "/dev" {
			t.Errorf("%s of the host is mounted whole", it.Source)
		}
	}
}

func TestProcNone(t *testing.T) {
	in := input()
	in.Proc = false
	for _, it := range mustPlan(t, in) {
		if it.Kind == wire.OpProc || it.Kind == wire.OpMask {
			t.Errorf("%s %s without /proc", it.Kind, it.Target)
		}
	}
}

// TestDirectoryImage: what an image has at our own names is never used, and a
// link of the image's stays text.
func TestDirectoryImage(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"usr", "opt", "etc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"bin": "usr/bin", "dev": "/dev", "proc": "/proc", "tmp": "/", "work": "/etc", "out": "/root", "sys": "..", "code": "/", "evil": "/proc/1/root"} {
		if err := os.Symlink(text, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	in := input()
	from(t, &in, dir)
	items := mustPlan(t, in)
	for _, it := range items {
		if it.Kind == wire.OpLink && slices.Contains([]string{"/dev", "/proc", "/tmp", "/work", "/out", "/sys", "/code"}, it.Target) {
			t.Errorf("the image's link %s -> %s is used", it.Target, it.Source)
		}
		if it.Kind == wire.OpBind && strings.HasPrefix(it.Source, dir) && (!it.Open || !it.IDMap || it.Ino == 0) {
			t.Errorf("%s is not pinned: %+v", it.Source, it)
		}
	}
	if i := index(items, wire.OpLink, "/evil"); i < 0 || items[i].Source != "/proc/1/root" {
		t.Error("the link of another name is lost")
	}
	if index(items, wire.OpBind, "/usr") < 0 || index(items, wire.OpFile, "/etc/passwd") >= 0 {
		t.Error("the image's /usr and /etc are not used")
	}
}

// TestImageResolver: with a list of hosts ours lies over an image's own file, and
// not over a link, where nothing can be mounted.
func TestImageResolver(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../run/resolv.conf", filepath.Join(dir, "etc/resolv.conf")); err != nil {
		t.Fatal(err)
	}
	for _, network := range []bool{false, true} {
		in := input()
		in.Network = network
		from(t, &in, dir)
		items := mustPlan(t, in)
		if index(items, wire.OpMask, "/etc/resolv.conf") >= 0 {
			t.Error("a link is covered")
		}
		if covered := index(items, wire.OpMask, "/etc/nsswitch.conf") >= 0; covered != network {
			t.Errorf("with a list: %v, covered: %v", network, covered)
		}
	}
}

func TestDirectoryImageBounds(t *testing.T) {
	in := input()
	from(t, &in, t.TempDir())
	if _, err := Plan(in); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty image: %v", err)
	}
	from(t, &in, t.TempDir())
	for i := range maxTopLevel + 1 {
		if err := os.Mkdir(filepath.Join(in.Image, strings.Repeat("x", i%20+1)+string(rune('a'+i/20))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Plan(in); err == nil || !strings.Contains(err.Error(), "more than 256") {
		t.Errorf("%d entries: %v", maxTopLevel+1, err)
	}
}

// Another directory, or a link to one, at the name that was judged is refused.
func TestImageReplaced(t *testing.T) {
	in, dir := input(), t.TempDir()+"/image"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir+"/usr", 0o755))
	from(t, &in, dir)
	must(os.Rename(dir, dir+".moved"))
	for what, put := range map[string]func(){
		"link":      func() { must(os.Symlink(dir+".moved", dir)) },
		"directory": func() { must(os.MkdirAll(dir+"/usr", 0o755)) },
		"nothing":   func() {},
	} {
		put()
		if _, err := Plan(in); err == nil {
			t.Errorf("%s in the image's place was taken", what)
		}
		must(os.RemoveAll(dir))
	}
	must(os.Rename(dir+".moved", dir))
	mustPlan(t, in)
}

func TestPasswdAndGroup(t *testing.T) {
	for _, c := range []struct {
		uid, gid      uint32
		passwd, group string
	}{
		{65534, 65534, "root:x:0:0:root:/home/sandbox:/bin/sh\nnobody:x:65534:65534:nobody:/home/sandbox:/bin/sh\n", "root:x:0:\nnogroup:x:65534:\n"},
		{0, 0, "root:x:0:0:root:/home/sandbox:/bin/sh\nnobody:x:65534:65534:nobody:/home/sandbox:/bin/sh\n", "root:x:0:\nnogroup:x:65534:\n"},
		{1000, 7, "root:x:0:0:root:/home/sandbox:/bin/sh\nsandbox:x:1000:7:sandbox:/home/sandbox:/bin/sh\nnobody:x:65534:65534:nobody:/home/sandbox:/bin/sh\n", "root:x:0:\nsandbox:x:7:\nnogroup:x:65534:\n"},
	} {
		if got := Passwd(c.uid, c.gid); got != c.passwd {
			t.Errorf("passwd of %d: %q", c.uid, got)
		}
		if got := Group(c.gid); got != c.group {
			t.Errorf("group of %d: %q", c.gid, got)
		}
	}
}
