package mount

import (
	"bytes"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// emptyDir is what hides a directory: the mount point of /dev/shm, which lies on
// the frozen root tmpfs and is empty, before the scratch covers it.
const emptyDir = "dev/shm"

// mask covers a file with Source, a file of the frozen root, and a directory
// with an empty read-only one. What this kernel does not have needs no mask.
func (b *Builder) mask(o *wire.Op) error {
	return b.hide(relative(o.Target), relative(o.Source), 0)
}

// hide looks first: a mount that fails makes the kernel wait for an RCU grace
// period. Unless mode is 0, what has none of its bits is left as it is.
func (b *Builder) hide(target, source string, mode uint32) error {
	var st unix.Stat_t
	err := unix.Fstatat(b.root, target, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil
	}
	if err != nil {
		return err
	}
	if mode != 0 && st.Mode&mode == 0 {
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		source = emptyDir
	case unix.S_IFLNK:
		return unix.ELOOP
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}

// others are the permissions that a program has on the files of /proc that
// belong to the host's root.
const others = 0o007

// rest hides what a directory of /proc holds and the plan does not name: a list
// of what to hide would miss the next kernel's, or the next module's, file. What
// only the host's root may read is left: a program is nobody to it.
func (b *Builder) rest(o *wire.Op) error {
	fd, err := b.openat(o.Target, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	known := map[string]bool{}
	for name := range bytes.FieldsSeq(o.Data) {
		known[string(name)] = true
	}
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if known[name] || name[0] >= '0' && name[0] <= '9' {
				continue
			}
			// A link shows nothing but what is inside anyway.
			if err := b.hide(relative(o.Target)+"/"+name, relative(o.Source), others); err != nil && err != unix.ELOOP {
				return &Error{Op: "mask " + o.Target + "/" + name, Errno: err.(unix.Errno)}
			}
		}
	}
}
