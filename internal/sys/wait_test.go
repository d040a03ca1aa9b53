package sys

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStartWaiting: the calls were made when it returns, nothing is executed before
// the word, and what becomes of that is told as of Start.
func TestStartWaiting(t *testing.T) {
	r, w := pipe(t)
	calls := &Calls{}
	calls.Write("say", w, []byte("x"))
	calls.SignalMask("unblock signals", 0)
	for _, c := range []struct {
		paths []string
		code  int
		want  error
	}{
		{[]string{"/no/such/file", "/bin/sh"}, 42, nil},
		{[]string{"/no/such/file", "/etc/passwd"}, 127, unix.EACCES},
	} {
		wait4, pid, pidfd, err := StartWaiting(&Program{Calls: calls, Cgroup: -1})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(r, make([]byte, 2)); n != 1 || err != nil {
			t.Errorf("read %d, %v: the call was not made", n, err)
		}
		if ended(pidfd) {
			t.Error("it has ended before the word")
		}
		if err := wait4.Exec(c.paths, []string{"sh", "-c", `test "$A" = b && exit 42`}, []string{"A=b"}); err != nil {
			t.Fatal(err)
		}
		if code := wait(t, pid, pidfd); code != c.code {
			t.Errorf("status %d, want %d", code, c.code)
		}
		var se *StartError
		if err := wait4.Failure(); !errors.Is(err, c.want) || err != nil && (!errors.As(err, &se) || se.Call != "execve" || se.Path != "/etc/passwd") {
			t.Errorf("%#v, want %v", err, c.want)
		}
	}
}

// TestStartWaitingFails: a call that fails is named, and nobody waits.
func TestStartWaitingFails(t *testing.T) {
	calls := &Calls{}
	calls.Add("first", unix.SYS_GETPID)
	calls.Add("wrong", unix.SYS_DUP3, ^uintptr(0), 0, 0)
	_, _, _, err := StartWaiting(&Program{Calls: calls, Cgroup: -1})
	var se *StartError
	if !errors.As(err, &se) || se.Call != "wrong" || se.Errno != unix.EBADF {
		t.Errorf("%v", err)
	}
}

func pipe(t *testing.T) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePair(p) })
	return p[0], p[1]
}
