package hostpath

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"

	"golang.org/x/sys/unix"
)

// TestMounts: whatever changes a mount gives another list, and nothing else does.
func TestMounts(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"/tmp/a", "/tmp/b", "/tmp/c"} {
		must(os.Mkdir(d, 0o755))
	}
	now := func() *Table {
		t.Helper()
		m, err := Mounts()
		must(err)
		return m
	}
	setattr := func() error {
		return unix.MountSetattr(unix.AT_FDCWD, "/tmp/a", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC})
	}
	was := now()
	for i, change := range []func() error{
		func() error { return unix.Mount("/tmp/c", "/tmp/a", "", unix.MS_BIND, "") },
		func() error { return unix.Mount("", "/tmp/a", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "") },
		setattr,
		func() error { return unix.Mount("/tmp/a", "/tmp/b", "", unix.MS_MOVE, "") },
		func() error { return unix.Unmount("/tmp/b", unix.MNT_DETACH) },
	} {
		if now() != was {
			t.Errorf("%d: another list, and nothing has changed", i)
		}
		must(change())
		m := now()
		if m == was || m.About([]string{"/tmp/a", "/tmp/b"}) == was.About([]string{"/tmp/a", "/tmp/b"}) {
			t.Errorf("%d: the list is as before", i)
		}
		if m.About([]string{"/run"}) != was.About([]string{"/run"}) {
			t.Errorf("%d: it is told of another path", i)
		}
		was = m
	}
}

// TestAbout: the mounts on the way to a path and below it count, with how they are
// mounted, and no others, nor what is not the mount's own.
func TestAbout(t *testing.T) {
	table := func(text string) *Table { return &Table{mounts: parseMounts(text)} }
	const list = `1 0 8:1 / / rw shared:1 - ext4 /dev/a rw
2 1 0:20 /x /home rw,nosuid shared:7 - tmpfs none rw,size=1k
3 2 0:21 / /home/u/task/with\040space ro - tmpfs none rw
4 1 0:22 / /homes rw - tmpfs none rw
`
	text := table(list).About([]string{"/home/u/task", "/nothing"})
	if text != "1 8:1 / / rw\n2 0:20 /x /home rw,nosuid\n3 0:21 / /home/u/task/with\\040space ro\n" {
		t.Errorf("%q", text)
	}
	for i, other := range []struct {
		old, new string
		same     bool
	}{
		{"3 2 0:21", "5 2 0:21", false}, {"0:21", "0:23", false}, {"/x", "/y", false}, {"nosuid", "noexec", false}, {"space ro", "space rw", false},
		{"shared:1 ", "master:1 ", true}, {"size=1k", "size=2k", true}, {"homes rw", "homes ro", true},
	} {
		got := table(strings.Replace(list, other.old, other.new, 1)).About([]string{"/home/u/task"})
		if same := got == text; same != other.same {
			t.Errorf("%d: %q", i, got)
		}
	}
	if got := table(list).About([]string{filepath.Join("/home/u/task/with space", fmt.Sprint(1))}); got != text {
		t.Errorf("%q", got)
	}
}
