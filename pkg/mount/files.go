package mount

import (
	"path"
	"strconv"
	"strings"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// beneath resolves below the root and follows no link at all: the root's own
// links are only for the program.
const beneath = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func octal(mode uint32) string { return "0" + strconv.FormatUint(uint64(mode), 8) }
func decimal(n uint64) string  { return strconv.FormatUint(n, 10) }

// relative turns a path of the new root into one below the working directory,
// which is the new root until pivot_root.
func relative(path string) string {
	for len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if path == "" {
		return "."
	}
	return path
}

func (b *Builder) openat(path string, flags uint64) (int, error) {
	return unix.Openat2(b.root, relative(path), &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: beneath})
}

// parent is the directory of path, made if missing, and the last name. The
// descriptor stays the Builder's.
func (b *Builder) parent(path string) (dir int, name string, err error) {
	path = relative(path)
	above := up(path)
	if above != "." {
		name = path[len(above)+1:]
	} else {
		name = path
	}
	if b.dir >= 0 && b.dirPath == above {
		return b.dir, name, nil
	}
	dir, err = b.openat(above, unix.O_PATH|unix.O_DIRECTORY)
	if err == unix.ENOENT {
		if err = b.makeDir(above, 0o755); err != nil {
			return -1, "", err
		}
		dir, err = b.openat(above, unix.O_PATH|unix.O_DIRECTORY)
	}
	if err != nil {
		return -1, "", err
	}
	b.remember(dir, above)
	return dir, name, nil
}

func (b *Builder) remember(dir int, path string) {
	b.forget()
	b.dir, b.dirPath = dir, path
}

// covered drops the remembered directory where a mount at target lies over it, or
// over one on the way to it. Of a name that is not clean nobody knows.
func (b *Builder) covered(target string) {
	target = relative(target)
	rest, found := strings.CutPrefix(b.dirPath, target)
	if found && (rest == "" || rest[0] == '/') || target == "." || target != path.Clean(target) {
		b.forget()
	}
}

// forget drops the remembered directory.
func (b *Builder) forget() {
	if b.dir >= 0 {
		unix.Close(b.dir)
		b.dir = -1
	}
}

// makeDir makes a directory and its parents; one that is there is left alone.
func (b *Builder) makeDir(path string, mode uint32) error {
	dir, name, err := b.parent(path)
	if err != nil {
		return err
	}
	err = unix.Mkdirat(dir, name, mode)
	if err == unix.EEXIST {
		return b.mustBeDir(path)
	}
	return err
}

func (b *Builder) mustBeDir(path string) error {
	fd, err := b.openat(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func (b *Builder) mustBeFile(path string) error {
	fd, err := b.openat(path, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return nil
}

func (b *Builder) create(path string, mode uint32) (int, error) {
	dir, name, err := b.parent(path)
	if err != nil {
		return -1, err
	}
	return unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
}

func (b *Builder) makeFile(o *wire.Op) error {
	fd, err := b.create(o.Target, o.Mode)
	if err == unix.EEXIST && len(o.Data) == 0 {
		return b.mustBeFile(o.Target) // a mount point that an image has
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for data := o.Data; len(data) > 0; {
		n, err := unix.Write(fd, data)
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// copyFile copies from a descriptor of the supervisor's. It stops at Size even
// if the file has grown since it was looked at.
func (b *Builder) copyFile(o *wire.Op) error {
	fd, err := b.create(o.Target, o.Mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	offset := int64(o.Offset)
	for copied := uint64(0); copied < o.Size; copied = uint64(offset) - o.Offset {
		n, err := unix.Sendfile(fd, int(o.FD), &offset, int(min(o.Size-copied, 1<<20)))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	return nil
}

func (b *Builder) makeLink(o *wire.Op) error {
	dir, name, err := b.parent(o.Target)
	if err != nil {
		return err
	}
	return unix.Symlinkat(o.Source, dir, name)
}

// mountPoint opens Target, made as a directory or an empty file as the mount
// needs. In a read-only image it must be there already.
func (b *Builder) mountPoint(mount int, target string) (int, error) {
	fd, err := b.openat(target, unix.O_PATH)
	if err != unix.ENOENT {
		return fd, explain(target, err)
	}
	if err := b.mustBeOurs(target); err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(mount, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		fd, err = b.create(target, 0o644)
		return fd, explain(target, err)
	}
	if err = b.makeDir(target, 0o755); err != nil {
		return -1, explain(target, err)
	}
	return b.openat(target, unix.O_PATH)
}

// mustBeOurs refuses to make a mount point anywhere but in the root tmpfs: in a
// writable mount it would stay behind in the caller's own directory.
func (b *Builder) mustBeOurs(target string) error {
	above := up(relative(target))
	if b.dir >= 0 && b.dirPath == above {
		return b.onRoot(b.dir, target)
	}
	for path := above; ; path = up(path) {
		fd, err := b.openat(path, unix.O_PATH|unix.O_DIRECTORY)
		if err == unix.ENOENT && path != "." {
			continue
		}
		if err != nil {
			return explain(target, err)
		}
		if path == above {
			b.remember(fd, above) // the mount point is made in it next
			return b.onRoot(fd, target)
		}
		err = b.onRoot(fd, target)
		unix.Close(fd)
		return err
	}
}

// onRoot says whether fd lies on the root tmpfs itself.
func (b *Builder) onRoot(fd int, target string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if uint64(st.Dev) != b.dev {
		return explain(target, unix.EROFS)
	}
	return nil
}

func up(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "."
}

func explain(target string, err error) error {
	switch err {
	case unix.ELOOP:
		return &Error{Op: "mount " + target, Errno: unix.ELOOP, Note: "the target leads through a symbolic link"}
	case unix.EROFS, unix.EACCES:
		return &Error{Op: "mount " + target, Errno: err.(unix.Errno), Note: "the target is not there, and making it would change the host"}
	}
	return err
}
