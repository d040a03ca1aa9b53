package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandglass/internal/deliver"
	"sandglass/internal/refusal"
)

// The rules of what sandglass itself says:
//
//   - stdout belongs to the program; ours is only what was asked for there
//     (--json, plan, check, version).
//   - On stderr an error is one line, "sandglass: error: what, where", in lower
//     case and without a full stop, followed by "hint:" lines that can be pasted.
//   - Notes and progress go to stderr only when it is a terminal.
//   - Text that comes from outside is quoted where it is put into a line; what
//     was forgotten there still cannot steer the terminal or forge a line.

func printError(w io.Writer, what string, hints []string) {
	shown := make([]string, len(hints))
	for i, h := range hints {
		shown[i] = own(h, os.Args)
	}
	tell(w, refusal.Text(what, shown))
}

// tell writes what a reader of stderr may or may not take: the program chooses
// how much of the pipe it leaves free.
func tell(w io.Writer, text string) {
	f, ok := w.(*os.File)
	if !ok {
		io.WriteString(w, text)
	} else if listens(f) {
		deliver.All(f, strings.NewReader(text)) // there is nobody else to tell
	}
}

// listens says whether a write to f would not wait. An error about a reader that
// is stuck, told to that very reader, would keep the run from ending after all.
func listens(f *os.File) bool {
	const patience = 1000 // ms
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}, patience)
		if err != unix.EINTR {
			return err != nil || n > 0
		}
	}
}

// own has a hint show the caller's own command line.
func own(hint string, args []string) string {
	if len(args) < 2 {
		return hint
	}
	return refusal.Own(hint, refusal.Called(args[1], args[2:]...))
}

// emit writes what was asked for on stdout. It returns 0, or the exit code of a
// stdout that did not take it.
func emit(text string) int {
	_, err := os.Stdout.WriteString(text)
	return stdoutCode(err)
}

// stdoutCode is the exit code for a write to stdout: an answer that is lost must
// not look like a good end. A reader that went away is no news to it: then the
// code is that of SIGPIPE.
func stdoutCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.EPIPE):
		return 128 + int(syscall.SIGPIPE)
	case errors.Is(err, deliver.ErrStuck):
		return fail(refusal.Newf("writing stdout: %v", err).Hint("sandglass run --result FILE   # who waits for the end first finds the result there"))
	}
	return fail(refusal.Newf("writing stdout: %v", refusal.Cause(err)).Hint("df -h .   # if stdout is a file of this directory"))
}

// fail prints an error and returns its exit code.
func fail(err error) int { return failOn(os.Stderr, err) }

func failOn(w io.Writer, err error) int {
	var r *refusal.Error
	if errors.As(err, &r) {
		printError(w, r.What, hinted(r.Hints))
		return r.Exit
	}
	printError(w, err.Error(), nil)
	return refusal.ExitRefused
}

// plain is a descriptor that is written to without the runtime's timers and its
// poller, which themselves need descriptors: where there are too few, that is
// what is to be told.
type plain int

func (fd plain) Write(b []byte) (int, error) { return unix.Write(int(fd), b) }

// hinted makes sure that no refusal is a dead end.
func hinted(hints []string) []string {
	if len(hints) == 0 {
		return []string{"sandglass run --help"}
	}
	return hints
}

// note says something that is no error. Ask personal first.
func note(format string, args ...any) {
	tell(os.Stderr, fmt.Sprintf("sandglass: "+format+"\n", args...))
}

// personal is whether a person reads f.
func personal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
