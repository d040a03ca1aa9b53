package hostpath

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandglass/internal/deliver"
)

// Replacement is a file that is to be written whole. Until Put nothing of it
// is there; then it appears at once, in place of whatever stands at its name.
// Its directory is open from the start, and no link is followed after that.
type Replacement struct {
	dir  int
	name string
	mode uint32
	// direct is what is written to in place: a FIFO, a character device, or a
	// file in a directory where nothing can be made (or that is a mount point).
	direct *os.File
}

// errKind is Replace's for a name that no file can take.
var errKind = errors.New("it is a directory, socket or block device")

// Replace opens where the file will be: its directory, whose path has no links.
func Replace(resolved string) (*Replacement, error) {
	parent, name := Split(resolved)
	dir, err := OpenDir(parent)
	if err != nil {
		return nil, err
	}
	r := &Replacement{dir: dir, name: name, mode: 0o666}
	if err := r.look(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Dir and Name say where it will be, for Reach.
func (r *Replacement) Dir() int     { return r.dir }
func (r *Replacement) Name() string { return r.name }

// look decides how to write, and finds now what would fail then.
func (r *Replacement) look() error {
	var st unix.Stat_t
	err := unix.Fstatat(r.dir, r.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && err != unix.ENOENT {
		return err
	}
	closed := unix.Faccessat(r.dir, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if err == unix.ENOENT {
		return closed
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if int(st.Uid) == os.Geteuid() {
			r.mode = st.Mode & 0o777 // one that was made private stays so
		}
		if closed != nil {
			return r.inPlace()
		}
		return nil
	case unix.S_IFIFO, unix.S_IFCHR:
		return r.inPlace()
	case unix.S_IFLNK:
		return unix.ELOOP
	}
	return errKind
}

func (r *Replacement) inPlace() error {
	fd, err := openat2(r.dir, r.name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil {
		r.direct = os.NewFile(uintptr(fd), r.name)
	}
	return err
}

// Put writes the file and gives it its name. It is called once.
func (r *Replacement) Put(from io.WriterTo) error {
	if r.direct == nil {
		err := r.replace(from)
		if !errors.Is(err, unix.EBUSY) { // a mount point cannot be replaced
			return err
		}
		if err := r.inPlace(); err != nil {
			return err
		}
	}
	if err := unix.Ftruncate(int(r.direct.Fd()), 0); err != nil && err != unix.EINVAL {
		return err // EINVAL: a FIFO or a device
	}
	return deliver.All(r.direct, from)
}

func (r *Replacement) replace(from io.WriterTo) error {
	d, err := NewDraft(r.dir, r.mode)
	if err != nil {
		return err
	}
	if _, err = from.WriteTo(d); err == nil {
		err = d.Place(r.name, true)
	}
	return errors.Join(err, d.Close(err == nil))
}

// Close lets go of the directory.
func (r *Replacement) Close() error {
	unix.Close(r.dir)
	if r.direct != nil {
		return r.direct.Close()
	}
	return nil
}
