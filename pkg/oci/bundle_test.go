package oci

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/refusal"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/wire"
)

func bundle(t *testing.T, set func(*policy.Spec)) *Bundle {
	t.Helper()
	s := policy.Default()
	s.Program.Command = []string{"true"}
	set(&s)
	p, err := plan.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func (b *Bundle) at(target string) Mount {
	for _, m := range b.Config.Mounts {
		if m.Destination == target {
			return m
		}
	}
	return Mount{}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	b := bundle(t, func(s *policy.Spec) {
		s.Mounts = []policy.Mount{{Source: dir, Target: "/data"}, {Source: dir, Target: "/back", Write: true}}
		s.User, s.Workdir, s.Env = policy.User{UID: 5, GID: 6}, "/data", []string{"A=1"}
		s.Limits.Memory, s.Limits.MilliCPU, s.Limits.Pids, s.Limits.CPUTime = 64<<20, 500, 9, 1e9
		s.Limits.Disk, s.Limits.DiskInodes = 1<<20, 77
	})
	c := &b.Config
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	none := []string{}
	same("capabilities", c.Process.Capabilities, Capabilities{none, none, none, none, none})
	same("no_new_privs", c.Process.NoNewPrivileges, true)
	same("user", c.Process.User, User{5, 6, 0o022})
	same("cwd", c.Process.Cwd, "/data")
	same("args", c.Process.Args, []string{"true"})
	same("env", c.Process.Env[len(c.Process.Env)-1], "A=1")
	same("root", c.Root, Root{"rootfs", true})
	same("hostname", c.Hostname+" "+c.Domainname, "sandglass (none)")
	same("uid map", c.Linux.UIDMappings, []IDMapping{{5, HostID, 1}, {0, HostID + 1, 1}})
	same("gid map", c.Linux.GIDMappings, []IDMapping{{6, HostID, 1}, {0, HostID + 1, 1}})
	same("namespaces", c.Linux.Namespaces, []Namespace{{"user"}, {"mount"}, {"pid"}, {"network"}, {"ipc"}, {"uts"}, {"cgroup"}})
	same("memory", c.Linux.Resources.Memory, Memory{64 << 20, 64 << 20})
	same("cpu", c.Linux.Resources.CPU, CPU{50000, 100000})
	same("pids", c.Linux.Resources.Pids, Pids{9})
	same("devices", c.Linux.Resources.Devices, []Device{{false, "rwm"}})
	same("read-only paths", c.Linux.ReadonlyPaths, []string{"/proc/sys"})
	same("core", c.Process.Rlimits[0], Rlimit{"RLIMIT_CORE", 1, 1})
	same("/usr", b.at("/usr").Options, []string{"rbind", "ro", "nosuid", "nodev", "rro", "rnosuid", "rnodev"})
	same("/data", b.at("/data").Options, []string{"rbind", "ro", "nosuid", "nodev", "rro", "rnosuid", "rnodev", "ridmap"})
	same("/back", b.at("/back").Options, []string{"rbind", "nosuid", "nodev", "rnosuid", "rnodev", "ridmap"})
	same("owner", b.at("/data").UIDMappings, []IDMapping{{uint32(os.Getuid()), HostID, 1}})
	same("/work", b.at("/work").Options, []string{"nosuid", "nodev", "mode=755", "uid=5", "gid=6", "size=1048576", "nr_inodes=77"})
	same("/tmp", b.at("/tmp").Options, []string{"nosuid", "nodev", "mode=1777", "size=1048576", "nr_inodes=77"})
	same("/proc", b.at("/proc").Options, []string{"nosuid", "nodev", "noexec", "hidepid=ptraceable"})
	same("/dev", b.at("/dev").Options, []string{"nosuid", "noexec", "mode=755", "size=64k", "ro"})
	same("annotations", c.Annotations[annotation+"timeout"]+" "+c.Annotations[annotation+"cpu-time"], "10s 1s")
	for _, name := range rootfs.Masked {
		if !slices.Contains(c.Linux.MaskedPaths, "/proc/"+name) {
			t.Errorf("/proc/%s is not masked", name)
		}
	}
	if b.at("/dev/null").Type != "" {
		t.Error("a device of the host's is bound")
	}
}

// TestStable: the same flags on the same host give the same bytes.
func TestStable(t *testing.T) {
	text := func() string {
		b, err := bundle(t, func(s *policy.Spec) { s.Env = []string{"A=1"} }).Config.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := text()
	for range 3 {
		if text() != first {
			t.Fatal("two translations of one Spec differ")
		}
	}
}

func TestWrite(t *testing.T) {
	code := filepath.Join(t.TempDir(), "x.sh")
	if err := os.WriteFile(code, []byte("#!/bin/sh\necho hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if err := os.WriteFile(data+"/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := bundle(t, func(s *policy.Spec) {
		s.Program = policy.Program{File: code}
		s.Mounts = []policy.Mount{{Source: data + "/f", Target: "/opt/a/b"}, {Source: data, Target: "/opt/c"}, {Source: data + "/f", Target: "/opt/c/f"}}
	})
	defer syscall.Umask(syscall.Umask(0o077)) // must not keep the runtime's id out
	dir := filepath.Join(t.TempDir(), "bundle")
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		".": 0o711 | os.ModeDir, "config.json": 0o600, "rootfs": 0o755 | os.ModeDir, "rootfs/code/x.sh": 0o444, "rootfs/etc/passwd": 0o644,
		"rootfs/dev": 0o755 | os.ModeDir, "rootfs/proc": 0o755 | os.ModeDir, "rootfs/work": 0o755 | os.ModeDir, "rootfs/opt/a/b": 0o644, "rootfs/opt/c": 0o755 | os.ModeDir, "rootfs/usr": 0o755 | os.ModeDir,
	} {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, st, err, want)
		}
	}
	if text, err := os.ReadFile(dir + "/rootfs/code/x.sh"); string(text) != "#!/bin/sh\necho hi\n" {
		t.Errorf("the code is %q, %v", text, err)
	}
	if text, _ := os.Readlink(dir + "/rootfs/var/run"); text != "../run" {
		t.Errorf("/var/run leads to %q", text)
	}
	link := dir + "-link"
	if err := os.Symlink("/nonexistent", link); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{dir: "is there already", link: "symbolic link", dir + "/a/b": "no such file"} {
		err := b.Write(name)
		if _, ok := err.(*refusal.Error); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A program must not be able to rewrite the bundle that it is started from.
func TestBundleIsOutOfReach(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{true, false} {
		b := bundle(t, func(s *policy.Spec) { s.Mounts = []policy.Mount{{Source: dir, Target: "/data", Write: write}} })
		for _, name := range []string{dir + "/b", dir + "/sub/b"} {
			err := b.Write(name)
			if r, ok := err.(*refusal.Error); write && (!ok || !strings.Contains(r.What, "inside the writable mount")) {
				t.Errorf("%s in a writable mount: %v", name, err)
			}
			if !write && err != nil {
				t.Errorf("%s in a read-only mount: %v", name, err)
			}
		}
	}
}

// What has no translation is refused and not left out.
func TestNoHoles(t *testing.T) {
	tr := &tree{bundle: &Bundle{}, spec: &policy.Spec{}}
	for _, op := range []wire.Op{{Kind: 99}, {Kind: wire.OpInner, Source: "/a", Target: "/b"}} {
		if _, ok := tr.item(&rootfs.Item{Op: op}).(*refusal.Error); !ok {
			t.Errorf("%+v is accepted", op)
		}
	}
	if _, err := filter(seccomp.Filter{Name: "/x.bpf"}); err == nil || !strings.Contains(err.Error(), "/x.bpf is a compiled filter") {
		t.Errorf("a compiled filter: %v", err)
	}
}
