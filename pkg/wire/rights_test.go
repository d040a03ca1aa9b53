package wire

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func socketpair(t *testing.T) (int, int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(pair[0]) })
	return pair[0], pair[1]
}

// openFDs is the set of descriptors of this process.
func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func sendWith(t *testing.T, socket int, b []byte, fds ...int) {
	t.Helper()
	if err := unix.Sendmsg(socket, b, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		t.Fatal(err)
	}
}

func TestReadFrameWithFiles(t *testing.T) {
	ours, theirs := socketpair(t)
	defer unix.Close(theirs)
	sendWith(t, theirs, Frame(TypeReady, []byte("ab")), 0, 1)
	typ, body, fds, err := ReadFrameWithFiles(ours, 4, 2)
	if err != nil || typ != TypeReady || string(body) != "ab" || len(fds) != 2 {
		t.Fatalf("got %v %q %v %v, want Ready with ab and two descriptors", typ, body, fds, err)
	}
	for _, fd := range fds {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags != unix.FD_CLOEXEC {
			t.Errorf("descriptor %d has flags %d, %v; want close-on-exec", fd, flags, err)
		}
		unix.Close(fd)
	}
}

// TestDescriptorsOfABadFrame sends what a peer that was taken over would: more
// descriptors than agreed, at once or one with each byte, and a frame that is
// cut off. The receiver's table is as it was.
func TestDescriptorsOfABadFrame(t *testing.T) {
	frame := Frame(TypeReady, []byte("abcdef"))
	for name, send := range map[string]func(*testing.T, int){
		"three in one message": func(t *testing.T, s int) { sendWith(t, s, frame, 0, 1, 2) },
		"one with each byte": func(t *testing.T, s int) {
			for i := range frame {
				sendWith(t, s, frame[i:i+1], 0)
			}
		},
		"too long":  func(t *testing.T, s int) { sendWith(t, s, Frame(TypeReady, make([]byte, 9)), 0) },
		"cut short": func(t *testing.T, s int) { sendWith(t, s, frame[:7], 0) },
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := socketpair(t)
			before := openFDs(t)
			send(t, theirs)
			unix.Close(theirs)
			_, _, fds, err := ReadFrameWithFiles(ours, 8, 2)
			if !errors.Is(err, ErrMalformed) || fds != nil {
				t.Errorf("got %v, %v; want ErrMalformed and no descriptors", fds, err)
			}
			if after := openFDs(t); after != before-1 {
				t.Errorf("%d descriptors before, %d after; want one less, the peer's", before, after)
			}
		})
	}
}

func TestPeerGone(t *testing.T) {
	ours, theirs := socketpair(t)
	unix.Close(theirs)
	if _, _, _, err := ReadFrameWithFiles(ours, 8, 2); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
}
