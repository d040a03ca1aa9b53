package testkit

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lines is a buffer whose readers can wait for a line.
type lines struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	more   chan struct{} // closed and replaced when something came
	closed bool
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	l.wake()
	return len(p), nil
}

// wake is called with the lock held.
func (l *lines) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// wait returns the first complete line with text in it.
func (l *lines) wait(ctx context.Context, text string) (string, bool) {
	for {
		l.mu.Lock()
		all, more, closed := l.buf.String(), l.more, l.closed
		l.mu.Unlock()
		for line := range strings.Lines(all) {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				return strings.TrimSuffix(line, "\n"), true
			}
		}
		if closed {
			return "", false
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", false
		}
	}
}

// WaitGone waits for the end of a process, by its pidfd. A process that is gone
// already is no error.
func WaitGone(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatalf("pidfd_open %d: %v", pid, err)
	}
	defer unix.Close(fd)
	WaitPidfd(t, fd)
}

// WaitPidfd waits for the end of the process behind a pidfd.
func WaitPidfd(t testing.TB, fd int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			t.Fatalf("a process is still there after %v", patience)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatalf("poll: %v", err)
		}
		if n > 0 {
			return
		}
	}
}

// Eventually waits for a state of the kernel's that comes without an event, by
// looking again and again.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !inTime(holds) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// inTime looks until something holds, and says whether it did.
func inTime(holds func() bool) bool {
	begin := time.Now()
	for !holds() {
		waited := time.Since(begin)
		if waited > patience {
			return false
		}
		// Gives the processor to who is waited for, and on a slow machine more of it.
		unix.Poll(nil, int(1+min(waited.Milliseconds()/10, 20)))
	}
	return true
}
