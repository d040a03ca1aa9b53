package boxinit

import (
	"errors"
	"os"
	"reflect"
	"testing"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// TestReceivePlan: the descriptors of several frames are counted through, in
// order, close-on-exec, and a frame's bytes stay whole around them.
func TestReceivePlan(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := pair[0], os.NewFile(uintptr(pair[1]), "control")
	defer unix.Close(ours)
	defer theirs.Close()
	var pipes [3][2]int
	for i := range pipes {
		if err := unix.Pipe2(pipes[i][:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	for _, fds := range [][]int{{pipes[0][1], pipes[1][1]}, {pipes[2][1]}} {
		if err := unix.Sendmsg(ours, wire.Frame(wire.TypeFiles, nil), unix.UnixRights(fds...), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	cfg := wire.Config{
		Hostname: "h", Box: wire.NoFD, Stdin: wire.FirstFile + 2, Stdout: wire.FirstFile, Stderr: wire.NoFD,
		Tasks: []int32{wire.FirstFile + 1}, Mounts: []wire.Op{{Kind: wire.OpDir, Target: "/x", FD: wire.NoFD}},
		Limit: 1,
	}
	if _, err := unix.Write(ours, wire.Frame(wire.TypeConfig, cfg.Encode())); err != nil {
		t.Fatal(err)
	}
	b := &box{control: int(theirs.Fd()), cfg: &wire.Config{}}
	if err := receivePlan(b); err != nil {
		t.Fatal(err)
	}
	if b.cfg.Box != wire.NoFD || b.cfg.Stderr != wire.NoFD || b.cfg.Mounts[0].FD != wire.NoFD {
		t.Errorf("fields without a descriptor: %d %d %d", b.cfg.Box, b.cfg.Stderr, b.cfg.Mounts[0].FD)
	}
	for i, fd := range []int32{b.cfg.Stdout, b.cfg.Tasks[0], b.cfg.Stdin} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d: flags %#x, %v", fd, flags, err)
		}
		var sent, got unix.Stat_t
		if err := errors.Join(unix.Fstat(pipes[i][1], &sent), unix.Fstat(int(fd), &got)); err != nil {
			t.Fatal(err)
		}
		if got.Ino != sent.Ino {
			t.Errorf("field %d leads to inode %d, want %d", i, got.Ino, sent.Ino)
		}
	}
}

// TestNumber: a plan that counts a descriptor that did not come is no plan.
func TestNumber(t *testing.T) {
	for _, fd := range []int32{0, 3, wire.FirstFile + 2, -2, 1 << 30} {
		c := &wire.Config{Box: wire.NoFD, Stdin: wire.NoFD, Stdout: wire.NoFD, Stderr: fd}
		if err := numberAll(c, []int{10, 11}); err != wire.ErrMalformed {
			t.Errorf("descriptor %d of two: %v", fd, err)
		}
	}
	c := &wire.Config{Box: wire.FirstFile + 1, Stdin: wire.FirstFile, Stdout: wire.NoFD, Stderr: wire.NoFD}
	if err := numberAll(c, []int{10, 11}); err != nil || !reflect.DeepEqual([]int32{c.Box, c.Stdin}, []int32{11, 10}) {
		t.Errorf("got %d and %d, %v", c.Box, c.Stdin, err)
	}
}
