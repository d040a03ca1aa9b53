package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// envQuiet tells the test binary that it is the one inside.
const envQuiet = "SANDGLASS_TEST_QUIET"

// Quiet runs the rest of the test in a host of its own: the test binary again,
// for this one test, in new PID, mount, IPC and network namespaces, with empty
// /run, /tmp, /var/tmp and /dev/shm. There a Snapshot sees what runs of this test
// left and nothing of others'. It returns true in the one inside; the caller
// returns at once when it is false:
//
//	if !testkit.Quiet(t) {
//		return
//	}
//
// It needs root. t must be a top-level test.
func Quiet(t *testing.T) bool {
	t.Helper()
	return QuietWith(t, func() string { return Binary(t) })
}

// QuietWith is Quiet for another binary, which is made outside.
func QuietWith(t *testing.T, binary func() string) bool {
	t.Helper()
	Requires(t, "root")
	if os.Getenv(envQuiet) == t.Name() {
		settle(t)
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), envQuiet+"="+t.Name(), EnvBinary+"="+binary())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("inside: %v\n%s", err, text)
	} else if testing.Verbose() {
		t.Logf("inside:\n%s", text)
	}
	return false
}

// settle gives the one inside its own /proc and empty directories. It reaps
// nothing: whoever leaves an orphan behind shows as a process that is left.
func settle(t *testing.T) {
	t.Helper()
	must := func(err error, what string) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	text, err := os.ReadFile(os.Getenv(EnvBinary))
	must(err, "the binary under test")
	must(OwnMounts(), "own mounts")
	const own = "/run/binary-under-test"
	must(os.WriteFile(own, text, 0o755), own)
	must(os.Chmod(own, 0o755), own)
	must(os.Setenv(EnvBinary, own), EnvBinary)
}

// OwnMounts gives a process in new PID and mount namespaces its own /proc and
// empty directories wherever something could be left.
func OwnMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("own /proc: %w", err)
	}
	for _, d := range []string{"/run", "/var/tmp", "/dev/shm", "/tmp"} {
		if err := unix.Mount("tmpfs", d, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("own %s: %w", d, err)
		}
	}
	return nil
}
