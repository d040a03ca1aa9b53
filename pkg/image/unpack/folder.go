package unpack

import (
	"io"
	"os"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image/tree"

	"golang.org/x/sys/unix"
)

// folder takes a directory of the caller's as a root. Nothing is followed: not a
// link, not a mount point, whatever somebody puts there meanwhile.
func (u *unpacker) folder(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	u.out.Tree.Begin()
	return u.inFolder(fd, ".", "", &st)
}

// inFolder takes the directory name of dir, whose path in the image is at.
func (u *unpacker) inFolder(dir int, name, at string, root *unix.Stat_t) error {
	f, st, err := openEntry(dir, name, at, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := u.out.Tree.Put(at, fromStat(st, tree.Dir)); err != nil {
		return err
	}
	names, err := f.Readdirnames(int(u.limits.Files) + 1)
	if err != nil && err != io.EOF {
		return refusal.Within(refusal.Word(cut(at)), err)
	}
	slices.Sort(names)
	for _, n := range names {
		below := n
		if at != "" {
			below = at + "/" + n
		}
		if err := u.inDirectory(int(f.Fd()), n, below, root); err != nil {
			return err
		}
	}
	return nil
}

// openEntry opens one entry as it is by then, and waits for nobody.
func openEntry(dir int, name, at string, flags int) (*os.File, *unix.Stat_t, error) {
	fd, err := hostpath.Beneath(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	if err != nil && at == "" {
		return nil, nil, err // of what is imported itself, whose name is told anyway
	}
	if err != nil {
		return nil, nil, refusal.Within(refusal.Word(cut(at)), err)
	}
	f := os.NewFile(uintptr(fd), at)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, &st, nil
}

func fromStat(st *unix.Stat_t, kind tree.Kind) tree.Node {
	return tree.Node{Kind: kind, Mode: st.Mode & 0o7777, UID: int64(st.Uid), GID: int64(st.Gid), MTime: seconds(st.Mtim.Sec)}
}

// inDirectory takes one entry.
func (u *unpacker) inDirectory(dir int, name, at string, root *unix.Stat_t) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return refusal.Within(refusal.Word(cut(at)), err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if st.Dev != root.Dev {
			u.skip(at, "mount point")
			return nil
		}
		return u.inFolder(dir, name, at, root)
	case unix.S_IFLNK:
		buf := make([]byte, maxPath+1)
		size, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return refusal.Within(refusal.Word(cut(at)), err)
		}
		n := fromStat(&st, tree.Link)
		n.Target = string(buf[:size])
		return u.out.Tree.Put(at, n)
	case unix.S_IFREG:
		return u.regular(dir, name, at)
	case unix.S_IFIFO:
		u.skip(at, "FIFO")
	case unix.S_IFSOCK:
		u.skip(at, "socket")
	default:
		u.skip(at, "device")
	}
	return nil
}

// regular takes a file, as it is once it is open: it may have become another.
func (u *unpacker) regular(dir int, name, at string) error {
	f, st, err := openEntry(dir, name, at, unix.O_NOCTTY)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return refusal.Within(refusal.Word(cut(at)), hostpath.ErrNotRegular)
	}
	n := fromStat(st, tree.File)
	caps, err := unix.Fgetxattr(int(f.Fd()), "security.capability", nil)
	n.Caps = err == nil && caps > 0
	u.packed += st.Blocks * 512
	if err := u.take(io.LimitReader(f, st.Size+1), st.Size, &n); err != nil {
		return refusal.Within(refusal.Word(cut(at)), err)
	}
	return u.out.Tree.Put(at, n)
}
