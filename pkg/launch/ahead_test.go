package launch

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/wire"
)

// Whatever changes the mounts, or the file systems' own options, after they were read
// is seen, so that what was read before the program's start counts at its start.
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
	self := procOf(unix.Gettid())
	s := &session{pid: unix.Gettid()}
	s.namespaces, s.nsErr = namespacesOf(s.pid)
	held := func() bool {
		t.Helper()
		var rb ReadBack
		must(s.mounts(&rb, self))
		return rb.mountsHeld
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
		{"a larger tmpfs", func() error { return reconfigure(at, "size", "1g") }},
		{"one on top", func() error { return unix.Mount("none", at, "tmpfs", 0, "size=4k") }},
		{"unmount", func() error { return unix.Unmount(at, 0) }},
		{"the last unmount", func() error { return unix.Unmount(at, 0) }},
	} {
		var err error
		s.ahead.mounts, err = readProc(self + "/mountinfo")
		must(err)
		if !held() {
			t.Errorf("before %s: a list has changed that was just read", c.name)
		}
		must(c.do())
		if held() {
			t.Errorf("%s: nothing is seen", c.name)
		}
	}
	var rb ReadBack
	if err := s.mounts(&rb, "/proc/0"); err != nil {
		t.Errorf("a program that hides its namespace: %v", err)
	}
	if err := s.mounts(&rb, procOf(os.Getppid())); err == nil {
		t.Error("a program in another mount namespace is not told from one in init's")
	}
	must(unix.Unshare(unix.CLONE_NEWNS))
	for _, program := range []string{self, "/proc/0"} {
		if err := s.mounts(&rb, program); err == nil {
			t.Errorf("init is in another mount namespace than at its start: nothing is seen beside %s", program)
		}
	}
}

// reconfigure sets an option of the file system itself, whose mounts stay as they are.
func reconfigure(at, option, value string) error {
	fs, err := unix.Fspick(unix.AT_FDCWD, at, unix.FSPICK_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	return errors.Join(unix.FsconfigSetString(fs, option, value), unix.FsconfigReconfigure(fs))
}

// What was looked at ahead is not looked at again, and is where it cannot be relied on.
func TestMountsAreReadAgain(t *testing.T) {
	now, err := readProc("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		ahead []byte
		again bool
	}{{"as planned", now, false}, {"not as planned", nil, true}, {"of before", now[1:], true}} {
		s := &session{pid: os.Getpid(), end: &Ending{}, box: &Box{Config: wire.Config{Mounts: asPlanned().promised.mounts}}, ahead: ahead{mounts: c.ahead}}
		s.namespaces, s.nsErr = namespacesOf(s.pid)
		rb := ReadBack{promised: s.promise()}
		if err := s.mounts(&rb, procOf(s.pid)); err != nil {
			t.Fatal(err)
		}
		if string(rb.mounts) != string(now) || rb.mountsHeld == c.again {
			t.Errorf("%s: taken as held %v, list %.40q", c.name, rb.mountsHeld, rb.mounts)
		}
		// This process's own mounts are no sandbox's.
		if err := rb.checkMounts(); (err != nil) != c.again {
			t.Errorf("%s: %v", c.name, err)
		}
		if !s.rooted() || c.ahead == nil && s.ahead.mounts != nil || s.rooted() {
			t.Errorf("%s: init's word that its root is made is taken once, and for no more than a moment to look", c.name)
		}
	}
}
