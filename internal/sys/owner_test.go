package sys

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestSpawnOwner: the namespace belongs to the owner, and this thread is what
// it was: its user, its capabilities, its parent-death signal.
func TestSpawnOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP(want root, have uid " + strconv.Itoa(os.Geteuid()) + ")")
	}
	requireUserNS(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGURG), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
	before := effective(t)
	p := shell("read x; exit 9", asOther(&Calls{}))
	p.Owner = 4321
	var owner uint32
	pid, pidfd, err := Spawn(p, newUser, func(pid int) error {
		ns, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/user")
		if err != nil {
			return err
		}
		defer ns.Close()
		if owner, err = unix.IoctlGetUint32(int(ns.Fd()), unix.NS_GET_OWNER_UID); err != nil {
			return err
		}
		return mapOther(pid)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := wait(t, pid, pidfd); got != 9 || owner != 4321 {
		t.Errorf("status %d, owner %d; want 9 and 4321", got, owner)
	}
	if after := effective(t); after != before || os.Geteuid() != 0 {
		t.Errorf("capabilities %x and user %d after it, want %x and 0", after, os.Geteuid(), before)
	}
	var death int32
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&death)), 0, 0, 0); err != nil || death != int32(unix.SIGURG) {
		t.Errorf("parent-death signal %d (%v), want %d", death, err, unix.SIGURG)
	}
	if d, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); d != 1 {
		t.Errorf("dumpable is %d, want 1", d)
	}
}

// effective is this thread's effective capabilities.
func effective(t *testing.T) [2]uint32 {
	t.Helper()
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{}
	if err := unix.Capget(hdr, &data[0]); err != nil {
		t.Fatal(err)
	}
	return [2]uint32{data[0].Effective, data[1].Effective}
}
