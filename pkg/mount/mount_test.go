package mount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

func TestOptions(t *testing.T) {
	for text, want := range map[string][]option{
		"":                       nil,
		"newinstance":            {{"newinstance", ""}},
		"hidepid=ptraceable":     {{"hidepid", "ptraceable"}},
		"newinstance,mode=0620,": {{"newinstance", ""}, {"mode", "0620"}},
		"a=b=c":                  {{"a", "b=c"}},
	} {
		if got := options([]byte(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]string{"/": ".", "": ".", "/a/b": "a/b", "//a": "a"} {
		if got := relative(path); got != want {
			t.Errorf("relative(%q) = %q", path, got)
		}
	}
	for path, want := range map[string]string{"a/b/c": "a/b", "a": ".", ".": "."} {
		if got := up(path); got != want {
			t.Errorf("up(%q) = %q", path, got)
		}
	}
}

// inNamespace runs the named test again, as the mapped root of new user and
// mount namespaces, where it may build a root of its own. It says whether this
// is that second run.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("MOUNT_TEST_INSIDE") == "1" {
		runtime.LockOSThread()
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	// Its own directory is below ours: after a pivot it can remove none.
	cmd.Env = append(os.Environ(), "MOUNT_TEST_INSIDE=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func build(t *testing.T, ops ...wire.Op) (*Builder, error) {
	t.Helper()
	b := New()
	ops = append([]wire.Op{{Kind: wire.OpRoot, Mode: 0o755, Size: 1 << 20, Inodes: 200}}, ops...)
	for i := range ops {
		if err := b.Apply(&ops[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func TestNoRootYet(t *testing.T) {
	for k := wire.OpDir; k <= wire.OpRest; k++ {
		if err := New().Apply(&wire.Op{Kind: k, Target: "/x"}); err == nil {
			t.Errorf("%s without a root", k)
		}
	}
	if err := (&Builder{root: 0}).Apply(&wire.Op{Kind: wire.OpRest + 1}); err == nil {
		t.Error("an unknown operation was done")
	}
}

// TestRoot: the root is what was planned, the host's is gone, and what was
// frozen cannot be written.
func TestRoot(t *testing.T) {
	dir := t.TempDir()
	if !inNamespace(t) {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := build(t,
		wire.Op{Kind: wire.OpFile, Target: "/etc/deep/file", Mode: 0o640, Data: []byte("text")},
		wire.Op{Kind: wire.OpLink, Target: "/link", Source: "etc"},
		wire.Op{Kind: wire.OpDir, Target: "/tmp", Mode: 0o1777},
		wire.Op{Kind: wire.OpBind, Source: dir, Target: "/host", Recursive: true},
		wire.Op{Kind: wire.OpFreeze, Attr: wire.ReadOnly | wire.NoSuid | wire.NoDev},
		wire.Op{Kind: wire.OpTmpfs, Target: "/tmp", Mode: 0o1777, Size: 64 << 10, Inodes: 10},
		wire.Op{Kind: wire.OpPivot},
	)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	entries, err := os.ReadDir("/")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"etc", "host", "link", "tmp"}; !reflect.DeepEqual(names, want) {
		t.Errorf("the root holds %v, want %v", names, want)
	}
	if got, err := os.ReadFile("/link/deep/file"); err != nil || string(got) != "text" {
		t.Errorf("file: %q, %v", got, err)
	}
	for _, path := range []string{"/new", "/etc/new", "/host/new"} {
		if err := os.WriteFile(path, nil, 0o600); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("writing %s: %v", path, err)
		}
	}
	if err := os.WriteFile("/tmp/big", make([]byte, 128<<10), 0o600); err == nil {
		t.Error("128 KiB fit into 64")
	}
}

// TestMask: what is named is covered by its own file, a directory by an empty
// one; of the rest only processes, the named, links and what nobody else may read
// are left.
func TestMask(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	file := func(name string, mode uint32) wire.Op {
		return wire.Op{Kind: wire.OpFile, Target: "/host/" + name, Mode: mode, Data: []byte("host's")}
	}
	b, err := build(t,
		wire.Op{Kind: wire.OpDir, Target: "/dev/shm", Mode: 0o755},
		wire.Op{Kind: wire.OpFile, Target: "/tmp/size", Mode: 0o444, Data: []byte("ours")},
		wire.Op{Kind: wire.OpFile, Target: "/tmp/nothing", Mode: 0o444},
		file("size", 0o444), file("named", 0o444), file("other", 0o444), file("secret", 0o400), file("17/status", 0o444), file("dir/entry", 0o444),
		wire.Op{Kind: wire.OpLink, Target: "/host/link", Source: "named"},
		wire.Op{Kind: wire.OpFreeze, Attr: wire.ReadOnly},
		wire.Op{Kind: wire.OpMask, Source: "/tmp/size", Target: "/host/size"},
		wire.Op{Kind: wire.OpMask, Source: "/tmp/size", Target: "/host/of/another/kernel"},
		wire.Op{Kind: wire.OpRest, Source: "/tmp/nothing", Target: "/host", Data: []byte("size named")},
		wire.Op{Kind: wire.OpRest, Source: "/tmp/nothing", Target: "/of/another/kernel"},
		wire.Op{Kind: wire.OpPivot},
	)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	for name, want := range map[string]string{
		"size": "ours", "named": "host's", "other": "", "secret": "host's", "17/status": "host's", "link": "host's",
	} {
		if got, err := os.ReadFile("/host/" + name); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	if list, err := os.ReadDir("/host/dir"); err != nil || len(list) != 0 {
		t.Errorf("dir: %v %v, want empty", list, err)
	}
	if err := os.WriteFile("/host/other", nil, 0o600); !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EACCES) {
		t.Errorf("writing what is masked: %v", err)
	}
}

// TestTargetLink: a link where a mount should go is never followed, wherever
// it leads: that was runc's CVE-2025-31133 and its kin.
func TestTargetLink(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, text := range []string{"/etc", "..", "/proc/self/cwd", "dir"} {
		for _, target := range []string{"/link", "/link/below"} {
			_, err := build(t,
				wire.Op{Kind: wire.OpDir, Target: "/dir", Mode: 0o755},
				wire.Op{Kind: wire.OpLink, Target: "/link", Source: text},
				wire.Op{Kind: wire.OpTmpfs, Target: target, Mode: 0o755, Size: 4096},
			)
			if err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("%s through a link to %q: %v", target, text, err)
			}
		}
	}
}

// TestSourceSwapped: the bind refuses another file than the one that was checked.
func TestSourceSwapped(t *testing.T) {
	dir := t.TempDir()
	if !inNamespace(t) {
		return
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	op := wire.Op{Kind: wire.OpBind, Source: dir, Target: "/x", Dev: uint64(st.Dev), Ino: st.Ino}
	if _, err := build(t, op); err != nil {
		t.Fatal(err)
	}
	// A link that leads to the very file is one that nobody judged.
	for _, link := range []string{dir + ".link", dir + ".link/sub"} {
		op := op
		if op.Source = link; strings.HasSuffix(link, "/sub") {
			if err := unix.Mkdir(dir+"/sub", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Stat(dir+"/sub", &st); err != nil {
				t.Fatal(err)
			}
			op.Ino = st.Ino
		} else if err := unix.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		if _, err := build(t, op); err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("%s: %v", link, err)
		}
	}
	op.Ino++
	if _, err := build(t, op); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("another inode: %v", err)
	}
}

// TestNoGhosts: a mount point is never made in a directory of the caller's.
func TestNoGhosts(t *testing.T) {
	dir := t.TempDir()
	if !inNamespace(t) {
		return
	}
	_, err := build(t,
		wire.Op{Kind: wire.OpBind, Source: dir, Target: "/data"},
		wire.Op{Kind: wire.OpTmpfs, Target: "/data/ghost/deep", Mode: 0o755, Size: 4096},
	)
	if err == nil || !strings.Contains(err.Error(), "would change the host") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCopyBound: a file that grew since it was looked at is cut at its size.
func TestCopyBound(t *testing.T) {
	dir := t.TempDir()
	if !inNamespace(t) {
		return
	}
	src := filepath.Join(dir, "f")
	if err := os.WriteFile(src, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[uint64]string{0: "", 4: "0123", 10: "0123456789", 99: "0123456789"} {
		b, err := build(t, wire.Op{Kind: wire.OpCopy, Target: "/code/f", FD: int32(f.Fd()), Size: size, Mode: 0o444})
		if err != nil {
			t.Fatal(err)
		}
		fd, err := b.openat("/code/f", unix.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, _ := unix.Read(fd, buf)
		if string(buf[:n]) != want {
			t.Errorf("size %d: %q", size, buf[:n])
		}
	}
}

// TestCovered: a mount over the directory that is remembered, or over one on the
// way to it, must have it looked up anew: what is made next would lie below it.
func TestCovered(t *testing.T) {
	for target, kept := range map[string]bool{
		"/etc": false, "/etc/ssl": false, "/": false, "/etc/../etc": false, "//etc//ssl": false,
		"/etc/ssl/certs": true, "/etcetera": true, "/etc/ss": true, "/usr": true,
	} {
		fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := New()
		b.remember(fd, "etc/ssl")
		b.covered(target)
		if got := b.dir >= 0; got != kept {
			t.Errorf("after a mount at %s the directory etc/ssl is remembered: %v, want %v", target, got, kept)
		}
		b.Close()
	}
}
