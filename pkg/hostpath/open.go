package hostpath

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// openat2 opens one path without any link on its way.
func openat2(dir int, name string, flags uint64, mode uint32) (int, error) {
	how := &unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Mode: uint64(mode), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(dir, name, how)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Beneath opens a name below an open directory, without any link on its way and
// without a way out of that directory: what lies there may be hostile.
func Beneath(dir int, name string, flags int, mode uint32) (int, error) {
	how := &unix.OpenHow{
		Flags: uint64(flags) | unix.O_CLOEXEC | unix.O_NOFOLLOW, Mode: uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for {
		fd, err := unix.Openat2(dir, name, how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: a rename elsewhere, see openat2(2)
			return fd, err
		}
	}
}

// DirBeneath opens a directory below another one for reading, as Beneath does.
func DirBeneath(dir int, name string) (int, error) {
	return Beneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// OpenDir pins a directory whose path has no links: O_PATH, for the *at calls.
// One that was put on the way since is an error, ELOOP.
func OpenDir(resolved string) (int, error) {
	return openat2(unix.AT_FDCWD, resolved, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// OpenFile opens a file for reading whose path has no links. The open of a FIFO
// does not wait for a writer, and that of a terminal does not take it.
func OpenFile(resolved string) (*os.File, error) {
	fd, err := openat2(unix.AT_FDCWD, resolved, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: resolved, Err: err}
	}
	return os.NewFile(uintptr(fd), resolved), nil
}

// ErrNotRegular is OpenRegular's for a directory, FIFO, socket or device.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular is OpenFile for a regular file and nothing else. It looks before
// it opens: opening a device can already act.
func OpenRegular(resolved string) (*os.File, int64, error) {
	pin, err := openat2(unix.AT_FDCWD, resolved, unix.O_PATH, 0)
	if err != nil {
		return nil, 0, &fs.PathError{Op: "open", Path: resolved, Err: err}
	}
	defer unix.Close(pin)
	var want, got unix.Stat_t
	if err := unix.Fstat(pin, &want); err != nil {
		return nil, 0, err
	}
	if want.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, 0, ErrNotRegular
	}
	f, err := OpenFile(resolved)
	if err != nil {
		return nil, 0, err
	}
	err = unix.Fstat(int(f.Fd()), &got)
	if err == nil && (got.Dev != want.Dev || got.Ino != want.Ino) {
		err = unix.ESTALE
	}
	if err != nil {
		f.Close()
		return nil, 0, &fs.PathError{Op: "open", Path: resolved, Err: err}
	}
	return f, got.Size, nil
}

// Split is a clean absolute path's directory and last name; "/" has no name.
func Split(name string) (dir, base string) {
	if name == "/" {
		return "/", "."
	}
	return path.Dir(name), path.Base(name)
}
