package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/deliver"
)

// Write shows what the program writes.
func (t *tty) Write(p []byte) (int, error) {
	if !t.spoke.Load() && slices.ContainsFunc(p, steers) {
		t.spoke.Store(true)
	}
	return deliver.Write(os.Stdout, p)
}

// steers is whether a byte can be part of what a terminal answers to: ENQ, or
// the start of a sequence, which has a form of eight bits as well.
func steers(b byte) bool { return b == 0x05 || b == 0x1b || b >= 0x80 && b < 0xa0 }

// undo takes back what a program that came to no end of its own has left on: an
// unfinished sequence, letters as lines, the other screen (the place of the
// cursor is what leaving it goes back to, so it is kept first), a part that
// scrolls alone, colours, modes of keys; and what makes a terminal type by itself:
// reports of the mouse, of the focus, of colours and of its size, and marks
// around what is pasted. Of a terminal that is as usual it changes nothing.
const undo = "\x18\x0f\x1b(B\x1b7\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[0m\x1b[4l\x1b>" +
	"\x1b[?1;9;1000;1001;1002;1003;1004;2004;2031;2048l\x1b[?7;25h"

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
	if term := os.Getenv("TERM"); !t.spoke.Load() || term == "" || term == "dumb" {
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
