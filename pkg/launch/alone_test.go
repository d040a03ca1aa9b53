package launch

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// envAlone tells the test binary that it is the one inside.
const envAlone = "SANDGLASS_TEST_ALONE"

// alone runs the rest of the test in a network namespace of its own: the test binary
// again, for this one test. The kernel counts sockets by namespace, and in the host's
// others come and go between two looks. It is true in the one inside; the caller
// returns at once when it is false.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(envAlone) == t.Name() {
		loopbackUp(t)
		return true
	}
	runtime.LockOSThread() // whose end would be the other's too
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), envAlone+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   unix.SIGKILL,
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("inside: %v\n%s", err, text)
	}
	return false
}

func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
}
