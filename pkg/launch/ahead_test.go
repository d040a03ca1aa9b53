package launch

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/wire"
)

// Whatever changes the mounts after they were read is seen, so that what was read
// before the program's start counts at its start.
func TestMountsThatChangeAreSeen(t *testing.T) {
	testkit.Requires(t, "root")
	runtime.LockOSThread() // and ends with it: the namespace is this thread's
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS))
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	at := t.TempDir()
	read := func() *table {
		t.Helper()
		list, err := readTable(unix.Gettid())
		must(err)
		t.Cleanup(list.close)
		if list.changed() {
			t.Error("a list has changed that was just read")
		}
		return list
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"mount", func() error { return unix.Mount("none", at, "tmpfs", unix.MS_RDONLY, "size=4k") }},
		{"other attributes", func() error {
			return unix.MountSetattr(unix.AT_FDCWD, at, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{"remount", func() error { return unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID, "") }},
		{"one on top", func() error { return unix.Mount("none", at, "tmpfs", 0, "size=4k") }},
		{"unmount", func() error { return unix.Unmount(at, 0) }},
		{"the last unmount", func() error { return unix.Unmount(at, 0) }},
	} {
		list := read()
		must(c.do())
		if !list.changed() {
			t.Errorf("%s: nothing is seen", c.name)
		}
	}
	closed := read()
	closed.close()
	if !closed.changed() || !(*table)(nil).changed() {
		t.Error("a list that cannot be asked has not changed")
	}
}

// What was looked at ahead is not looked at again, and is where it cannot be relied on.
func TestMountsAreReadAgain(t *testing.T) {
	plan := asPlanned().promised.mounts
	for _, c := range []struct {
		name       string
		held, gone bool
		want       bool // that it is read again
	}{{"as planned", true, false, false}, {"not as planned", false, false, true}, {"no way to ask", true, true, true}} {
		list, err := readTable(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		list.text, list.held = []byte("of before"), c.held
		if c.gone {
			list.close()
			list.fd = 1 << 30
		}
		s := &session{pid: os.Getpid(), box: &Box{Config: wire.Config{Mounts: plan}}, ahead: ahead{table: list}}
		rb := ReadBack{promised: s.promise()}
		if err := s.mounts(&rb); err != nil {
			t.Fatal(err)
		}
		if again := string(rb.mounts) != "of before"; again != c.want || rb.mountsHeld == c.want {
			t.Errorf("%s: read again %v, taken as held %v", c.name, again, rb.mountsHeld)
		}
		// This process's own mounts are no sandbox's.
		if err := rb.checkMounts(); (err != nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
