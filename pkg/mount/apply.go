// Package mount builds the sandbox's root from a list of operations
// (wire.Op). The list is planned elsewhere, without a system call; here each
// operation becomes a few calls on descriptors below one root descriptor.
//
// The root is a tmpfs of our own and nothing untrusted runs before the last
// operation, so no path can be swapped under us from inside; what an image
// brings along (its links) is never followed: every target is resolved with
// openat2 below the root without links. That shuts the class of CVE-2024-21626,
// CVE-2025-31133, CVE-2025-52565 and CVE-2026-41579.
package mount

import (
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Error names the operation that failed.
type Error struct {
	Op    string // e.g. "mount /usr"
	Errno unix.Errno
	Note  string // what the errno means here, "" where it speaks for itself
}

func (e *Error) Error() string {
	if e.Note != "" {
		return e.Op + ": " + e.Note
	}
	return e.Op + ": " + e.Errno.Error()
}

func (e *Error) Unwrap() error { return e.Errno }

// Builder applies operations in order.
type Builder struct {
	root  int    // descriptor of the new root, -1 before OpRoot
	dev   uint64 // of the root tmpfs
	umask int    // the process's own, given back by Close; -1 before OpRoot

	// The directory that the last operation worked in. Most operations come
	// in runs of one directory, and a lookup is half of what each costs. It is
	// forgotten with a mount that covers it.
	dir     int
	dirPath string

	later *Later // nil for a root that nothing comes to any more
}

// New is a Builder for this process, which must be in a mount namespace of its
// own. The caller holds the thread: the working directory moves with it.
func New() *Builder { return &Builder{root: -1, umask: -1, dir: -1} }

// Name is how an operation is called in plans and errors.
func Name(o *wire.Op) string {
	switch o.Kind {
	case wire.OpRoot:
		return "mount root tmpfs"
	case wire.OpDir:
		return "make directory " + o.Target
	case wire.OpFile, wire.OpCopy, wire.OpText:
		return "write " + o.Target
	case wire.OpLink:
		return "link " + o.Target
	case wire.OpMask:
		return "mask " + o.Target
	case wire.OpRest:
		return "mask what else is in " + o.Target
	case wire.OpFreeze:
		return "make root read-only"
	case wire.OpPivot:
		return "pivot_root"
	default:
		return "mount " + o.Target
	}
}

// Apply does one operation.
func (b *Builder) Apply(o *wire.Op) error {
	err := b.apply(o)
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		return e
	}
	errno, ok := err.(unix.Errno)
	if !ok {
		errno = unix.EIO
	}
	return &Error{Op: Name(o), Errno: errno}
}

func (b *Builder) apply(o *wire.Op) error {
	if b.root < 0 && o.Kind != wire.OpRoot {
		return &Error{Op: Name(o), Errno: unix.EINVAL, Note: "the plan has no root yet"}
	}
	switch o.Kind {
	case wire.OpRoot:
		return b.makeRoot(o)
	case wire.OpDir:
		return explain(o.Target, b.makeDir(o.Target, o.Mode))
	case wire.OpFile:
		return explain(o.Target, b.makeFile(o))
	case wire.OpCopy:
		return b.copyFile(o)
	case wire.OpLink:
		return b.makeLink(o)
	case wire.OpBind:
		return b.bind(o)
	case wire.OpTree:
		return b.attach(int(o.FD), o)
	case wire.OpInner:
		return b.inner(o)
	case wire.OpTmpfs:
		return b.tmpfs(o)
	case wire.OpProc:
		return b.filesystem(o, "proc", options(o.Data))
	case wire.OpDevpts:
		return b.filesystem(o, "devpts", options(o.Data))
	case wire.OpMask:
		return b.mask(o)
	case wire.OpRest:
		return b.rest(o)
	case wire.OpText:
		return b.makeText(o)
	case wire.OpFreeze:
		return setattr(b.root, o.Attr, true)
	case wire.OpPivot:
		return b.pivot()
	}
	return unix.EINVAL
}

// Close drops the descriptors; they must not reach the program.
func (b *Builder) Close() {
	b.forget()
	if b.root >= 0 {
		unix.Close(b.root)
		b.root = -1
	}
	if b.umask >= 0 {
		unix.Umask(b.umask)
		b.umask = -1
	}
}

// OpenDir opens a directory of the new root for the supervisor.
func (b *Builder) OpenDir(path string) (int, error) {
	return b.openat(path, unix.O_RDONLY|unix.O_DIRECTORY)
}
