package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// device finds the whole disk behind a directory: its node and its number.
func device(t *testing.T, dir string) (node, number string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	number = fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	sys, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		testkit.Skip(t, "block device", "device "+number+" behind "+dir)
	}
	if _, err := os.Stat(sys + "/partition"); err == nil { // the limit is the disk's
		sys = filepath.Dir(sys)
		text, err := os.ReadFile(sys + "/dev")
		if err != nil {
			t.Fatal(err)
		}
		number = strings.TrimSpace(string(text))
	}
	node = "/dev/" + filepath.Base(sys)
	if err := unix.Stat(node, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		testkit.Skip(t, "block device", "no "+node)
	}
	return node, number
}

// The kernel has the rates that were asked for.
func TestIOReadBack(t *testing.T) {
	testkit.Requires(t, "root", "cgroup")
	node, number := device(t, "/var/tmp")
	o := testkit.Run(t, testkit.Opts{}, "--device-read-bps", node+":4m", "--device-write-bps", node+":3m",
		"--device-read-iops", node+":200", "--device-write-iops", node+":100", "--", "true")
	ended(t, o, result.Exited, 0, "")
	who := testkit.AsRoot(t)
	if kernelV2() {
		kernelSays(t, who, o, "io.max", number+" rbps=4194304 wbps=3145728 riops=200 wiops=100")
		return
	}
	kernelSays(t, who, o, "blkio.throttle.read_bps_device", number+" 4194304")
	kernelSays(t, who, o, "blkio.throttle.write_bps_device", number+" 3145728")
	kernelSays(t, who, o, "blkio.throttle.read_iops_device", number+" 200")
	kernelSays(t, who, o, "blkio.throttle.write_iops_device", number+" 100")
	if l := o.Result.Limits["io"]; l.EnforcedBy != result.ByCgroup1 {
		t.Errorf("io by %s", l.EnforcedBy)
	}
}

// onDisk is a directory on a disk, for everyone, and the disk's node.
func onDisk(t *testing.T) (dir, node string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sandglass-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	node, _ = device(t, dir)
	return dir, node
}

// uncached makes a file that the kernel has to read from the disk.
func uncached(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// Whichever way 3 MiB come from the disk or go there: at 1 MiB a second that
// takes more than a second and a half, which is a lower bound whatever the load.
func TestIOThrottles(t *testing.T) {
	testkit.Requires(t, "root", "cgroup", "python3")
	dir, node := onDisk(t)
	path := filepath.Join(dir, "io.py")
	if err := os.WriteFile(path, []byte(source(t, "io.py")), 0o644); err != nil {
		t.Fatal(err)
	}
	all := map[string]*testkit.Process{}
	for _, way := range []string{"direct", "read", "mapped", "sent", "ahead", "direct-write", "sync-write", "dsync-write"} {
		if !strings.HasSuffix(way, "-write") {
			uncached(t, filepath.Join(dir, way))
		}
		all[way] = testkit.Start(t, testkit.Opts{}, "--device-read-bps", node+":1m", "--device-write-bps", node+":1m",
			"-v", dir+":/data:rw", "--timeout", "100s", path, way, "/data/"+way)
	}
	for way, p := range all {
		o := p.Wait()
		if strings.Contains(o.Stderr, "Invalid argument") {
			testkit.Skip(t, "O_DIRECT", "a file system without it")
		}
		ended(t, o, result.Exited, 0, "3145728\n")
		held(t, o, "io", 1, by(testkit.AsRoot(t), result.ByNone))
		if o.Result.WallMS < 1500 {
			t.Errorf("%s: 3 MiB at 1 MiB a second took %d ms", way, o.Result.WallMS)
		}
	}
}

// A rate that nothing can hold is refused by name, and only that limit's
// permission lets it be.
func TestIORefused(t *testing.T) {
	who := testkit.AsUser(t)
	if who.Limited() {
		testkit.Skip(t, "a user without cgroups", "a delegated cgroup")
	}
	node, _ := device(t, "/var/tmp")
	o := testkit.Run(t, testkit.Opts{Who: who}, "--device-read-bps", node+":1m", "--", "true")
	if o.Exit != 125 || o.Result.Outcome != result.Refused || !strings.Contains(o.Stderr, "io limit: ") || !strings.Contains(o.Stderr, "hint: --allow-degraded io\n") {
		t.Errorf("exit %d, %s, %q", o.Exit, o.Result.Outcome, o.Stderr)
	}
	o = testkit.Run(t, testkit.Opts{Who: who, Strict: true}, "--allow-degraded", "memory,cpu,pids,io", "--device-read-bps", node+":1m", "--", "true")
	ended(t, o, result.Exited, 0, "")
	if l := o.Result.Limits["io"]; l.EnforcedBy != result.ByNone {
		t.Errorf("io by %s", l.EnforcedBy)
	}
}
