package artifacts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrTime is in Collect's error when Limits.Time ended the collection.
var ErrTime = errors.New("collecting artifacts reached its time limit")

// namesKept bounds ExistsError.Names, nameShown a name in an error's text: the
// program chooses both how many there are and how long they are.
const (
	namesKept = 10
	nameShown = 100
)

// ExistsError says that entries were left out because the destination has their
// names already. Nothing there was touched.
type ExistsError struct {
	Names     []string // manifest paths of the first 10
	Count     int      // all of them
	Forceable int      // how many force would have collected; the rest are of another type than what stands there
}

func (e *ExistsError) Error() string {
	s := "the destination already has " + plural(e.Count, "artifact") + ": "
	for i, n := range e.Names {
		if i > 0 {
			s += ", "
		}
		s += quote(n)
	}
	if more := e.Count - len(e.Names); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// CopyError says that entries were left out for a reason that is the host's and
// not the program's: the destination is full, over quota, read-only or does not
// allow the name; descriptors or memory ran out; a device failed.
type CopyError struct {
	Path  string // manifest path of the first; "." is the destination itself
	Count int    // entries left out for such a reason
	Err   error  // of the first, a unix.Errno; Unwrap returns it
}

func (e *CopyError) Error() string {
	s := "cannot collect artifact " + quote(e.Path) + ": " + e.Err.Error()
	if e.Count > 1 {
		s += fmt.Sprintf(" (and %d more)", e.Count-1)
	}
	return s
}

func (e *CopyError) Unwrap() error { return e.Err }

// destFault marks an error of the destination, which is the caller's business,
// against one of the source, which is the program's.
type destFault struct{ err error }

func (e *destFault) Error() string { return e.err.Error() }
func (e *destFault) Unwrap() error { return e.err }

// existsFault says what stands at the name in the destination.
type existsFault struct {
	typ       string
	forceable bool
}

func (e *existsFault) Error() string {
	if e.forceable {
		return "exists (use --force)"
	}
	return "exists as a " + e.typ + " in the destination; never replaced"
}

// errGrew is a source file that gives more than the limits that its size kept.
var errGrew = errors.New("grew past the limit while it was copied")

// reason is the text of Skipped for a failure on the source's side.
func reason(err error) string {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "permission denied"
	case errors.Is(err, unix.ENOENT):
		return "vanished while it was collected"
	case errors.Is(err, unix.EXDEV):
		return "on another mount, or moved away while it was collected"
	}
	return err.Error()
}

// ours tells an error of reading the source that the program cannot make, or
// that it must not hide something with: what it has locked itself is unlocked.
func ours(err error) bool {
	switch err {
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.EACCES, unix.EPERM,
		unix.EBADF, unix.ENOTDIR: // srcFD is not what Collect asks for
		return true
	}
	return false
}

// quote keeps control and direction characters of a hostile name off the
// terminal.
func quote(name string) string {
	if len(name) > nameShown {
		name = strings.ToValidUTF8(name[:nameShown], "") + "…"
	}
	return strconv.Quote(name)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
