package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/deliver"
)

// Write shows what the program writes.
func (t *tty) Write(p []byte) (int, error) {
	t.spoken.look(p)
	return deliver.Write(os.Stdout, p)
}

// spoken is what a program has written to a terminal, as far as it matters when
// it is gone.
type spoken struct {
	mu    sync.Mutex
	steer bool // something that a terminal may answer to
	other bool // the other screen is on
	tail  []byte
}

// How editors and pagers come to the other screen and back: smcup and rmcup of
// xterm and its kin.
var smcup, rmcup = []byte("\x1b[?1049h"), []byte("\x1b[?1049l")

func (s *spoken) look(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steer = s.steer || slices.ContainsFunc(p, steers)
	if !s.steer {
		return
	}
	text := append(s.tail, p...)
	if on, off := bytes.LastIndex(text, smcup), bytes.LastIndex(text, rmcup); on != off {
		s.other = on > off
	}
	s.tail = bytes.Clone(text[max(0, len(text)-len(smcup)+1):])
}

// steers is whether a byte can be part of what a terminal answers to: ENQ, or
// the start of a sequence, which has a form of eight bits as well.
func steers(b byte) bool { return b == 0x05 || b == 0x1b || b >= 0x80 && b < 0xa0 }

// undo takes back what a program that came to no end of its own has left on: an
// unfinished sequence, letters as lines, the other screen, a part that scrolls
// alone, colours, modes of keys; and what makes a terminal type by itself:
// reports of the mouse, of the focus, of colours and of its size, and marks
// around what is pasted. Of a terminal that is as usual it changes nothing: rmcup
// would move the cursor there.
func (s *spoken) undo() string {
	screen := "\x1b[?47l"
	if s.other {
		screen = string(rmcup)
	}
	return "\x18\x0f\x1b(B" + screen + "\x1b7\x1b[r\x1b8\x1b[0m\x1b[4l\x1b>" +
		"\x1b[?1;9;1000;1001;1002;1003;1004;2004;2031;2048l\x1b[?7;25h"
}

const (
	// hushTime is the longest wait for a terminal's last answer, over a slow line.
	hushTime = 500 * time.Millisecond
	// quietTime without a byte ends that of a terminal that answers to less.
	quietTime = 100 * time.Millisecond
)

// hush waits, with the terminal still raw, for what it answers to the program's
// escape sequences: the caller's shell would read that as typed (as with
// CVE-2003-0063, an answer may have words that the program chose). It answers in
// order, so the answer to a question that the program cannot have asked, the
// state of two modes that nobody knows, is the last one. Not every terminal has
// that; "are you there" all have.
func (t *tty) hush() {
	close(t.keys.over)
	t.spoken.mu.Lock()
	steer, undo := t.spoken.steer, t.spoken.undo()
	t.spoken.mu.Unlock()
	if term := os.Getenv("TERM"); !steer || term == "" || term == "dumb" {
		return
	}
	var r [4]byte
	unix.Getrandom(r[:], 0)
	a, b := 10000+binary.LittleEndian.Uint16(r[:])%6000, 10000+binary.LittleEndian.Uint16(r[2:])%6000
	last := fmt.Appendf(nil, "\x1b[?%d;0$y\x1b[?%d;0$y", a, b)
	tell(os.Stdout, fmt.Sprintf("%s\x1b[5n\x1b[?%d$p\x1b[?%d$p", undo, a, b))
	var seen []byte
	var quiet <-chan time.Time
	for longest := time.After(hushTime); ; {
		select {
		case piece := <-t.keys.late:
			seen = append(seen[max(0, len(seen)-64):], piece...)
			if bytes.Contains(seen, last) {
				return
			}
			if quiet != nil || bytes.Contains(seen, []byte("\x1b[0n")) {
				quiet = time.After(quietTime)
			}
		case <-quiet:
			return
		case <-longest:
			return
		}
	}
}

// same is whether two descriptors are one terminal, by whatever name.
func same(a, b int) bool {
	x, err := unix.IoctlGetUint32(a, unix.TIOCGDEV)
	if err != nil {
		return false
	}
	y, err := unix.IoctlGetUint32(b, unix.TIOCGDEV)
	return err == nil && x == y
}
