package cgroup

import (
	"time"

	"golang.org/x/sys/unix"
)

// dir is one group's directory, held open.
type dir struct {
	path  string
	fd    int
	names []string // v1: the controllers it was made for
	tasks int      // v1: the tasks file open for writing, -1
}

var noDir = dir{fd: -1, tasks: -1}

const (
	lockedMode = 0o711 // see the package comment
	leafMode   = 0o755
)

// makeLocked makes path and takes its lock. A sweeper can find the new
// directory before the lock is taken, hold it to be dead and remove it:
// then it is made again. On a busy host the sweeper may hold it for long.
func makeLocked(path string) (dir, error) {
	deadline := time.Now().Add(10 * time.Second)
	for step := 0; ; step++ {
		if err := unix.Mkdir(path, lockedMode); err != nil {
			return noDir, err
		}
		d, err := openDir(path, lockedMode)
		if err == nil {
			if err = lock(d); err == nil {
				return d, nil
			}
			unix.Close(d.fd)
		}
		if err == unix.EWOULDBLOCK {
			err = waitGone(path, deadline)
		}
		if err != unix.ENOENT || !pause(step, deadline) {
			unix.Rmdir(path)
			return noDir, err
		}
	}
}

// mkdir makes a directory that others may pass, whatever the caller's umask.
func mkdir(path string) error {
	if err := unix.Mkdir(path, leafMode); err != nil {
		return err
	}
	if err := unix.Chmod(path, leafMode); err != unix.ENOENT {
		return err
	}
	return nil // another run's end has removed it: who uses it sees that
}

// openDir opens a directory that was just made and corrects the mode for the
// caller's umask.
func openDir(path string, mode uint32) (dir, error) {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return noDir, err
	}
	d := dir{path: path, fd: fd, tasks: -1}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return noDir, err
	}
	if st.Mode&0o777 != mode {
		if err := unix.Fchmod(fd, mode); err != nil {
			unix.Close(fd)
			return noDir, err
		}
	}
	return d, nil
}

// lock takes the directory's flock without waiting and makes sure that the
// path still leads to it. ENOENT: it is gone or another one is in its place.
func lock(d dir) error {
	if err := retry(func() error { return unix.Flock(d.fd, unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		return err
	}
	var held, now unix.Stat_t
	if err := unix.Fstat(d.fd, &held); err != nil {
		return err
	}
	if err := unix.Fstatat(unix.AT_FDCWD, d.path, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if held.Ino != now.Ino || held.Dev != now.Dev {
		return unix.ENOENT
	}
	return nil
}

// waitGone waits until a sweeper has removed path: ENOENT when it has.
func waitGone(path string, deadline time.Time) error {
	for step := 0; exists(path); step++ {
		if !pause(step, deadline) {
			return unix.EWOULDBLOCK
		}
	}
	return unix.ENOENT
}

func (d *dir) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
	if d.tasks >= 0 {
		unix.Close(d.tasks)
	}
	d.fd, d.tasks = -1, -1
}

// remove removes an empty group. The kernel can say EBUSY for a moment after
// the last process has gone (its exit is finished after its parent knows of
// it), and offers no event for that.
func remove(path string, deadline time.Time) error {
	for step := 0; ; step++ {
		err := retry(func() error { return unix.Rmdir(path) })
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY || !pause(step, deadline) {
			return err
		}
	}
}
