package hostpath

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// id is a file, whatever it is called.
type id struct{ dev, ino uint64 }

// Reach is what the program of a run can write to on the host: the sources of
// its writable mounts. What the supervisor writes, or is told its rules by, must
// lie outside: the program would put a link there, or its own words.
type Reach struct {
	sources []source
	mounts  []mountPoint // of the host, read when first needed
	known   bool
}

type source struct {
	path string
	id   id
	dir  bool
}

// Add notes a source by its path without links and by what was pinned there.
func (r *Reach) Add(resolved string, dev, ino uint64, dir bool) {
	r.sources = append(r.sources, source{resolved, id{dev, ino}, dir})
}

// Empty: no writable mount, nothing to keep away from.
func (r *Reach) Empty() bool { return len(r.sources) == 0 }

// Holds is the source that name, in an open directory, lies in or is; "" when
// there is none. resolved is the path of name without links. It is compared by
// path, by what the directories above it are, and by where it lies on its file
// system: a bind mount gives one directory two paths.
func (r *Reach) Holds(dir int, name, resolved string) (string, error) {
	if r.Empty() {
		return "", nil
	}
	above, err := ancestors(dir, resolved)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		above = append(above, id{uint64(st.Dev), st.Ino})
	}
	if err := r.readMounts(); err != nil {
		return "", err
	}
	at := place(r.mounts, resolved)
	for _, s := range r.sources {
		if within(resolved, s.path) {
			return s.path, nil
		}
		for _, a := range above {
			if a == s.id {
				return s.path, nil
			}
		}
		for _, p := range r.places(s.path) {
			if p.dev == at.dev && within(at.path, p.path) {
				return s.path, nil
			}
		}
	}
	return "", nil
}

// Below is the source that lies in an open directory, "" when there is none. A
// single file does not count: the program can neither rename nor replace it.
func (r *Reach) Below(dir int, resolved string) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return "", err
	}
	if err := r.readMounts(); err != nil {
		return "", err
	}
	at := place(r.mounts, resolved)
	for _, s := range r.sources {
		if !s.dir {
			continue
		}
		if p := place(r.mounts, s.path); within(s.path, resolved) || p.dev == at.dev && within(p.path, at.path) {
			return s.path, nil
		}
		fd, err := OpenDir(s.path)
		if err != nil {
			return "", err
		}
		above, err := ancestors(fd, s.path)
		unix.Close(fd)
		if err != nil {
			return "", err
		}
		for _, a := range above {
			if a == (id{uint64(st.Dev), st.Ino}) {
				return s.path, nil
			}
		}
	}
	return "", nil
}

// ancestors are an open directory and all above it, up to the root. The path
// without links says how many there are: the same directory may come twice, by
// a bind mount of one above it.
func ancestors(dir int, resolved string) ([]id, error) {
	var list []id
	fd, err := openat2(dir, ".", unix.O_PATH|unix.O_DIRECTORY, 0)
	for range strings.Count(resolved, "/") + 1 {
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			return nil, err
		}
		list = append(list, id{uint64(st.Dev), st.Ino})
		var up int
		up, err = openat2(fd, "..", unix.O_PATH|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		fd = up
	}
	if err == nil {
		unix.Close(fd)
	}
	return list, err
}

// within says that p is dir or lies in it; both are clean.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// mountPoint is a line of mountinfo: what of which file system is mounted where, and
// the line itself without what Table.About leaves out.
type mountPoint struct{ dev, root, point, line string }

// spot is a path on a file system, wherever that is mounted.
type spot struct{ dev, path string }

// place finds the spot of a path: the last mount on the longest way to it.
func place(mounts []mountPoint, p string) spot {
	var best *mountPoint
	for i := range mounts {
		m := &mounts[i]
		if within(p, m.point) && (best == nil || len(m.point) >= len(best.point)) {
			best = m
		}
	}
	if best == nil {
		return spot{dev: "?", path: p}
	}
	return spot{best.dev, path.Join(best.root, strings.TrimPrefix(p, strings.TrimSuffix(best.point, "/")))}
}

// places are the spots that a source shows: its own and, for it is mounted with
// all below it, those of the mounts in it.
func (r *Reach) places(p string) []spot {
	list := []spot{place(r.mounts, p)}
	for _, m := range r.mounts {
		if m.point != p && within(m.point, p) {
			list = append(list, spot{m.dev, m.root})
		}
	}
	return list
}
