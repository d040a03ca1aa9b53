package cgroup

import (
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTime bounds the whole of Sweep, so that a group which cannot be removed
// does not hold up every later start for long.
const sweepTime = time.Second

// Sweep removes the groups of creators that were killed, below the parent that
// Create would use with the same options, and kills what still runs in them.
// removed counts runs. A group whose creator lives is never touched. With
// nothing to do it costs an open and a stat of each parent.
func Sweep(o Options) (removed int, err error) {
	h, err := Find(o)
	if err != nil {
		return 0, err
	}
	return h.Sweep(o)
}

// Sweep is the function of that name on a host that was looked at.
func (f *Tree) Sweep(o Options) (removed int, err error) {
	if err := validateParent(o.Parent); err != nil {
		return 0, err
	}
	t := f.tree
	deadline := time.Now().Add(sweepTime)
	var errs []error
	done := map[string]bool{}
	for _, parent := range t.parents(o.Parent) {
		for _, name := range subdirs(parent) {
			if !strings.HasPrefix(name, prefix) || name == supervisorLeaf {
				continue
			}
			swept, err := sweepOne(parent+"/"+name, t.version, deadline)
			if err != nil {
				errs = append(errs, err)
			}
			if swept {
				done[name] = true
			}
		}
	}
	if t.version == 2 && len(done) > 0 {
		if p, c := t.planV2(o.Parent); c == nil && p.ours {
			unix.Rmdir(p.path) // EBUSY while others use it
		}
	}
	return len(done), errors.Join(errs...)
}

// parents are the existing directories below which groups would be made.
func (t *tree) parents(override string) []string {
	if t.version == 2 {
		if p, c := t.planV2(override); c == nil {
			return []string{p.path}
		}
		return nil
	}
	var list []string
	for _, ctrl := range v1Names {
		p, c := t.parentV1(ctrl, override)
		if c == nil && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// sweepOne removes one group if its creator is dead. Each v1 directory has a
// lock of its own, so a half-made or half-removed set is swept as well.
func sweepOne(path string, version int, deadline time.Time) (bool, error) {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false, nil // gone, or another user's
	}
	d := dir{path: path, fd: fd, tasks: -1}
	defer d.close()
	if lock(d) != nil {
		return false, nil // a living creator's, or another sweeper has it
	}
	if version == 2 {
		err = removeV2(d, deadline)
	} else {
		if exists(path + "/pids.max") {
			writeAt(d.fd, "pids.max", "0") // as in stopForks
		}
		err = removeV1(d, deadline)
	}
	return err == nil, err
}
