package artifacts

import (
	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
)

// Dest is a destination, open from before the run until what the program left
// has been collected. Its name is not looked up again in between: a program
// that can write beside it would turn it into a link (~/.ssh, /etc/cron.d).
type Dest struct {
	path   string // for messages
	parent int
	name   string
	dir    int // -1 while it is not there
}

// OpenDest opens the directory at path, or the one that it will be made in, and
// refuses what Collect could not use when the sandbox and its files are gone.
// The path is clean, absolute and without links: one that is met is refused. It
// also refuses a host without openat2 or /proc. It makes nothing. Every error
// is a *refusal.Error.
func OpenDest(path string) (*Dest, error) {
	proc, err := openProc()
	if err != nil {
		return nil, err
	}
	defer unix.Close(proc)
	if err := needOpenat2(proc); err != nil {
		return nil, err
	}
	d := &Dest{path: path, dir: -1}
	var parent string
	parent, d.name = hostpath.Split(path)
	if d.parent, err = hostpath.OpenDir(parent); err != nil {
		return nil, refuseParent(path, parent, err)
	}
	if err := d.open(parent); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Dest) open(parent string) error {
	fd, err := openat2(d.parent, d.name, unix.O_PATH|unix.O_DIRECTORY, resolveDest)
	switch err {
	case nil:
		d.dir = fd
		return checkWritable(fd, d.path)
	case unix.ENOENT:
		return checkWritable(d.parent, parent)
	case unix.ENOTDIR:
		var st unix.Stat_t
		if unix.Fstatat(d.parent, d.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return refusal.Newf("artifact destination: %s is a %s, not a directory", quote(d.path), typeOf(st.Mode))
		}
	}
	return refusal.Newf("artifact destination %s: %v", quote(d.path), err)
}

func refuseParent(path, parent string, err error) error {
	if err == unix.ENOENT {
		return refusal.Newf("artifact destination %s: its parent directory %s does not exist", quote(path), quote(parent)).
			Hint("mkdir -p -- %s", refusal.Shell(parent))
	}
	return refusal.Newf("artifact destination %s: parent directory: %v", quote(path), err)
}

func checkWritable(dir int, path string) error {
	// The effective id is what Collect will act with.
	if err := unix.Faccessat(dir, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		r := refusal.Newf("artifact destination: directory %s is not writable: %v", quote(path), err)
		if err == unix.EACCES {
			r.Hint("ls -ld -- %s", refusal.Shell(path))
		}
		return r
	}
	return nil
}

// Spot is an open directory and a name in it that stand for the destination.
func (d *Dest) Spot() (dir int, name string) {
	if d.dir >= 0 {
		return d.dir, "."
	}
	return d.parent, d.name
}

// make makes the directory if it was not there. One that somebody else made
// meanwhile will do: two runs may collect into one.
func (d *Dest) make(c *collector) (int, error) {
	if d.dir >= 0 {
		return d.dir, nil
	}
	made := unix.Mkdirat(d.parent, d.name, 0o755)
	if made != nil && made != unix.EEXIST {
		return -1, made
	}
	fd, err := openat2(d.parent, d.name, unix.O_PATH|unix.O_DIRECTORY, resolveDest)
	if err == nil {
		d.dir = fd
		if made == nil {
			c.keep(fd)
		}
	}
	return fd, err
}

// Close lets go of it.
func (d *Dest) Close() {
	for _, fd := range []int{d.parent, d.dir} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	d.parent, d.dir = -1, -1
}
