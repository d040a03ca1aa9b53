package hostpath

import (
	"encoding/hex"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// Draft is a file that gets its name when it is finished. Until then it has
// none, so that a supervisor that is killed while it writes leaves nothing; where
// the file system cannot do that (NFS, 9p) it has a random one.
type Draft struct {
	FD   int
	dir  int
	temp string // "" for no name
}

// NewDraft makes an empty file in an open directory.
func NewDraft(dir int, mode uint32) (*Draft, error) {
	fd, err := openat2(dir, ".", unix.O_WRONLY|unix.O_TMPFILE, mode)
	switch err {
	case nil:
		return &Draft{FD: fd, dir: dir}, nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.ENOENT, unix.EINVAL: // open(2), O_TMPFILE
		return NamedDraft(dir, mode)
	}
	return nil, err
}

// tempPrefix starts temporary names.
const tempPrefix = ".sandglass-"

// NamedDraft is NewDraft for file systems where each file has a name. It is
// random: in a directory that others can write to, nobody can take it first.
func NamedDraft(dir int, mode uint32) (*Draft, error) {
	d := &Draft{FD: -1, dir: dir}
	var err error
	d.temp, err = freeName(func(name string) (err error) {
		d.FD, err = openat2(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// freeName makes something under a name that nobody has.
func freeName(create func(name string) error) (string, error) {
	for range 100 {
		var r [8]byte
		if _, err := unix.Getrandom(r[:], 0); err == unix.EINTR {
			continue
		} else if err != nil {
			return "", err
		}
		name := tempPrefix + hex.EncodeToString(r[:])
		if err := create(name); err != unix.EEXIST {
			return name, err
		}
	}
	return "", unix.EEXIST
}

// Write writes all of b.
func (d *Draft) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n, err := unix.Write(d.FD, rest)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n <= 0 {
			err = unix.EIO
		}
		if err != nil {
			return len(b) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

// Place ends the writing and gives the file its name. Without replace the name
// must be free (EEXIST), which only the kernel can tell without a gap. No link is
// followed: one at the name is replaced itself.
func (d *Draft) Place(name string, replace bool) error {
	err := d.flush()
	if err == nil && d.temp == "" && !replace {
		return d.link(name)
	}
	if err == nil && d.temp == "" {
		d.temp, err = freeName(d.link)
	}
	if err != nil {
		return err
	}
	if replace {
		return unix.Renameat(d.dir, d.temp, d.dir, name)
	}
	err = unix.Renameat2(d.dir, d.temp, d.dir, name, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL {
		return err
	}
	return d.relink(name)
}

// relink is RENAME_NOREPLACE for file systems that have none (NFS, 9p).
func (d *Draft) relink(name string) error {
	if err := unix.Linkat(d.dir, d.temp, d.dir, name, 0); err != nil {
		return err
	}
	return unix.Unlinkat(d.dir, d.temp, 0)
}

// flush is a close of a second descriptor, whose error counts: network file
// systems report a full disk only there.
func (d *Draft) flush() error {
	fd, err := unix.FcntlInt(uintptr(d.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Close(fd); err != nil && err != unix.EINTR {
		return err
	}
	return nil
}

// link names the file for the first time. By the descriptor alone only some may
// (CAP_DAC_READ_SEARCH, or since Linux 6.10 who opened it), by /proc everybody.
func (d *Draft) link(name string) error {
	err := unix.Linkat(d.FD, "", d.dir, name, unix.AT_EMPTY_PATH)
	if err != unix.ENOENT {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(d.FD), d.dir, name, unix.AT_SYMLINK_FOLLOW)
}

// Close lets go of the file. One that has not been placed is gone.
func (d *Draft) Close(placed bool) error {
	err := unix.Close(d.FD)
	if placed || d.temp == "" {
		return err
	}
	return errors.Join(err, unix.Unlinkat(d.dir, d.temp, 0))
}
