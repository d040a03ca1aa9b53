package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program that leaves one page of the pipe free makes it look ready; what we
// say is longer, and the reader waits for our end.
func TestStuckReaderOfAnError(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 2*4096)
	if err != nil || size != 2*4096 {
		t.Fatalf("a pipe of %d bytes, %v", size, err)
	}
	if _, err := w.Write(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	printError(w, "x", []string{strings.Repeat("h", 9000)}) // must come back
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.Fd()), Events: unix.POLLOUT}}, 0); n != 0 || err != nil {
		t.Errorf("nothing was written: %d, %v", n, err)
	}
}
