package v2

import (
	"fmt"
	"os"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// since says whether this kernel is at least of a version.
func since(t *testing.T, major, minor int) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); err != nil {
		t.Fatal(err)
	}
	return a > major || a == major && b >= minor
}

// Root's sandboxes have an id of their own, so a writable mount needs a file
// system that can map ids: tmpfs only since Linux 6.3. Before it the mount is
// refused by name, and the hint's copy works.
func TestTmpfsIDMap(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	dir := testkit.Dir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, 0)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(dir string) testkit.Output {
		return testkit.Run(t, testkit.Opts{}, "-v", dir+":/data:rw", "--", "sh", "-c", "echo new >/data/file")
	}
	o := write(dir)
	if since(t, 6, 3) {
		ended(t, o, result.Exited, 0)
		return
	}
	refused(t, o, dir+": its file system cannot map ids (invalid argument), so the sandbox's own id could not read or write it",
		"cp -a -- "+dir+" /var/tmp/   # to a file system that can: ext4, xfs, btrfs, tmpfs (Linux 6.3)")
	disk(t, "/var/tmp")
	elsewhere, err := os.MkdirTemp("/var/tmp", "sandglass-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(elsewhere)
	ended(t, write(elsewhere), result.Exited, 0)
	if got := read(t, elsewhere, "file"); got != "new" {
		t.Errorf("the file holds %q", got)
	}
}

// Each figure of the result is there or named as unknown, whatever this kernel
// counts: memory.peak since 5.19, pids.peak since 6.1.
func TestPeaks(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "head -c 20m /dev/zero >/tmp/x; ", "")
	memory, pids := exists(l.box+"/memory.peak"), exists(l.box+"/pids.peak")
	if memory != since(t, 5, 19) || pids != since(t, 6, 1) {
		t.Errorf("memory.peak %t, pids.peak %t", memory, pids)
	}
	l.release()
	o := l.Wait()
	ended(t, o, result.Exited, 0)
	if got := o.Result.MemoryPeakBytes; got < 20<<20 || got > 40<<20 {
		t.Errorf("memory_peak_bytes %d of a program that held 20 MiB", got)
	}
	if got := o.Result.PidsPeak; pids && got != 2 || !pids && got != 0 {
		t.Errorf("pids_peak %d, want 2", got)
	}
}
