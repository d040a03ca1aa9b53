package cgroup

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// closeTime bounds Close. Killed processes end in a few ms unless they are in
// an uninterruptible wait, e.g. for a dead network file system.
const closeTime = 3 * time.Second

// Close kills what is left in the groups, PID 1 included, waits until they are
// empty, removes them and gives the lock back. The error names the path if
// something stays; a later Sweep tries again. It takes at most some seconds.
// Calling it again returns the first call's error.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.closeError
	}
	g.closed = true
	defer own.Delete(prefix + g.opt.ID)
	deadline := time.Now().Add(closeTime)
	if g.usage >= 0 {
		unix.Close(g.usage)
	}
	var errs []error
	if g.run.fd >= 0 {
		errs = append(errs, removeV2(g.run, deadline))
	}
	if len(g.v1) > 0 {
		g.closeV1(&errs, deadline)
	}
	for _, d := range []*dir{&g.box, &g.init, &g.run} {
		d.close()
	}
	if g.removeParent {
		unix.Rmdir(g.parent) // EBUSY while others use it: the last one removes it
	}
	g.closeError = errors.Join(errs...)
	return g.closeError
}

// Prune removes those of the groups that nobody is in, at once, and leaves the
// others and everything that fails to Close. Nothing but Close is called after it.
func (g *Group) Prune() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	left := g.v1[:0]
	for i := range g.v1 {
		if unix.Rmdir(g.v1[i].path) == nil {
			g.v1[i].close()
		} else {
			left = append(left, g.v1[i])
		}
	}
	g.v1 = left
	if g.box.fd >= 0 {
		unix.Rmdir(g.box.path)
	}
}

func (g *Group) closeV1(errs *[]error, deadline time.Time) {
	g.stopForks()
	for i := range g.v1 {
		*errs = append(*errs, removeV1(g.v1[i], deadline))
		g.v1[i].close()
	}
	g.v1 = nil
}

// stays says which group could not be removed.
func stays(path string, err error) error {
	if err == nil {
		return nil
	}
	return &stayError{path, err}
}

type stayError struct {
	path string
	err  error
}

func (e *stayError) Error() string { return "cgroup " + e.path + " stays: " + e.err.Error() }
func (e *stayError) Unwrap() error { return e.err }

// removeV1 tries the rmdir first: in a normal run the box is empty by now.
func removeV1(d dir, deadline time.Time) error {
	if err := unix.Rmdir(d.path); err == nil {
		return nil
	}
	if err := drainV1(d.fd, deadline); err != nil && !gone(err) {
		return stays(d.path, err)
	}
	return stays(d.path, remove(d.path, deadline))
}

// removeV2 removes a run's directory with everything below it.
func removeV2(d dir, deadline time.Time) error {
	s, err := readAt(d.fd, "cgroup.events")
	if err == nil && field(s, "populated") != 0 {
		err = killTree(d, deadline)
	}
	if err != nil && !gone(err) {
		return stays(d.path, err)
	}
	for _, leaf := range subdirs(d.path) {
		if err := remove(d.path+"/"+leaf, deadline); err != nil {
			return stays(d.path+"/"+leaf, err)
		}
	}
	return stays(d.path, remove(d.path, deadline))
}

func killTree(d dir, deadline time.Time) error {
	err := writeAt(d.fd, "cgroup.kill", "1")
	if err == unix.ENOENT { // before Linux 5.14
		for _, leaf := range subdirs(d.path) {
			fd, err := openAt(unix.AT_FDCWD, d.path+"/"+leaf, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return err
			}
			err = kill(fd)
			unix.Close(fd)
			if err != nil {
				return err
			}
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return waitV2(d.fd, deadline)
}

// subdirs lists the groups directly below path. Nothing inside can make any:
// the files are never writable there.
func subdirs(path string) []string {
	var st unix.Stat_t
	// kernfs counts subdirectories in the link count: with none there is
	// nothing to read.
	if unix.Stat(path, &st) != nil || st.Nlink == 2 {
		return nil
	}
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	dirs := names[:0]
	for _, name := range names {
		// The control files all have a '.' or one of three names; groups of
		// ours never have a dot.
		if !strings.Contains(name, ".") && name != "tasks" && name != "notify_on_release" && name != "release_agent" {
			dirs = append(dirs, name)
		}
	}
	return dirs
}
