package main

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keys is what comes from the caller's terminal: the program's while it runs,
// and nobody's after that.
type keys struct {
	pieces chan []byte // for the program, closed at the end of what is typed
	err    error       // why, set before
	over   chan struct{}
	late   chan []byte // what came after over was closed
	rest   []byte      // of a piece
	stop   *os.File    // closed when nothing is to be read any more
	until  *os.File    // the pipe's other end
}

func newKeys() (*keys, error) {
	until, stop, err := os.Pipe()
	return &keys{pieces: make(chan []byte), over: make(chan struct{}), late: make(chan []byte), stop: stop, until: until}, err
}

// Read is for the program's terminal.
func (k *keys) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		piece, ok := <-k.pieces
		if !ok {
			return 0, k.err
		}
		k.rest = piece
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func (k *keys) hand(piece []byte) {
	select {
	case <-k.over: // looked at first: between two that are ready it would be chance
	default:
		select {
		case k.pieces <- piece:
			return
		case <-k.over:
		}
	}
	k.late <- piece
}

// wait waits for a key. It says false when the terminal is given back: what is
// typed from then on is the shell's, and no read must lie in wait for it.
func (k *keys) wait(terminal int) bool {
	fds := []unix.PollFd{{Fd: int32(terminal), Events: unix.POLLIN}, {Fd: int32(k.until.Fd())}}
	for {
		n, err := unix.Poll(fds, -1)
		if err != unix.EINTR {
			return n > 0 && fds[1].Revents == 0
		}
	}
}

// follow reads the terminal to its end.
func (t *tty) follow() {
	for t.keys.wait(t.in) {
		buf := make([]byte, 4<<10)
		n, err := t.read(buf)
		if n > 0 {
			t.keys.hand(buf[:n])
		}
		// Others who share a terminal make it non-blocking: node, ssh.
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			t.keys.err = err
			close(t.keys.pieces)
			return
		}
	}
}

// read waits out the background, where a job may not read its terminal and gets
// EIO (see untilSignal): sent there and fetched again, it goes on. A terminal
// that is gone has no jobs any more.
func (t *tty) read(p []byte) (int, error) {
	for {
		n, err := os.Stdin.Read(p)
		if _, gone := unix.IoctlGetInt(t.in, unix.TIOCGPGRP); gone != nil || !errors.Is(err, syscall.EIO) {
			return n, err
		}
		t.turn()
	}
}

// turnTime is between two looks whether it is this job's turn. A shell that has
// the job go on in the foreground tells nobody.
const turnTime = 100 * time.Millisecond

// turn waits until the terminal is this job's, and makes it raw again: what the
// shell had set is for the shell. Raw before the next read, for that would not
// end by itself.
func (t *tty) turn() {
	for first := true; first || !foreground(t.in); first = false {
		time.Sleep(turnTime)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left && foreground(t.in) {
		set(t.in, &t.raw)
	}
}
