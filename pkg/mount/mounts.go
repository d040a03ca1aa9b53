package mount

import (
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// option is a key=value of fsconfig(2); an empty value is a flag.
type option struct{ key, value string }

// options parses "a=b,c" as mount(8) writes it.
func options(data []byte) []option {
	var list []option
	for start, i := 0, 0; i <= len(data); i++ {
		if i < len(data) && data[i] != ',' {
			continue
		}
		if field := string(data[start:i]); field != "" {
			o := option{key: field}
			for j := range field {
				if field[j] == '=' {
					o = option{key: field[:j], value: field[j+1:]}
					break
				}
			}
			list = append(list, o)
		}
		start = i + 1
	}
	return list
}

// Detached is a mount of a new file system that is attached nowhere, for work by
// its descriptor alone.
func Detached(fstype string, attr wire.Attr) (int, error) { return newMount(fstype, nil, attr) }

// newMount makes a detached mount of a new file system (Linux 5.2).
func newMount(fstype string, opts []option, attr wire.Attr) (int, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range opts {
		if o.value == "" {
			err = unix.FsconfigSetFlag(fs, o.key)
		} else {
			err = unix.FsconfigSetString(fs, o.key, o.value)
		}
		if err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(attrBits(attr)))
}

func attrBits(a wire.Attr) uint64 {
	var bits uint64
	for _, p := range [...]struct {
		attr wire.Attr
		bit  uint64
	}{
		{wire.ReadOnly, unix.MOUNT_ATTR_RDONLY},
		{wire.NoSuid, unix.MOUNT_ATTR_NOSUID},
		{wire.NoDev, unix.MOUNT_ATTR_NODEV},
		{wire.NoExec, unix.MOUNT_ATTR_NOEXEC},
	} {
		if a&p.attr != 0 {
			bits |= p.bit
		}
	}
	return bits
}

// setattr adds attributes to a mount (Linux 5.12). It only ever adds: flags
// that are locked because they come from the host's namespace stay.
func setattr(fd int, a wire.Attr, recursive bool) error {
	if a == 0 {
		return nil
	}
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return unix.MountSetattr(fd, "", flags, &unix.MountAttr{Attr_set: attrBits(a)})
}

func sizeOptions(o *wire.Op) []option {
	opts := []option{{"mode", octal(o.Mode)}, {"size", decimal(o.Size)}}
	if o.Inodes > 0 {
		opts = append(opts, option{"nr_inodes", decimal(o.Inodes)})
	}
	return opts
}

// makeRoot puts a tmpfs over "/". Paths from "/" go on meaning the host's,
// for a lookup starts below what is mounted on the process's root; so the
// host's directories can still be bound until pivot_root.
func (b *Builder) makeRoot(o *wire.Op) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return &Error{Op: "make mounts private", Errno: err.(unix.Errno)}
	}
	fd, err := newMount("tmpfs", sizeOptions(o), wire.NoSuid|wire.NoDev)
	if err != nil {
		return err
	}
	if err := moveMount(fd, unix.AT_FDCWD, "/"); err != nil {
		unix.Close(fd)
		return err
	}
	b.root = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	b.dev = uint64(st.Dev)
	// The umask must not decide what the program may read and write.
	b.umask = unix.Umask(0)
	return unix.Fchdir(fd)
}

func moveMount(fd, dirfd int, path string) error {
	flags := unix.MOVE_MOUNT_F_EMPTY_PATH
	if path == "" {
		flags |= unix.MOVE_MOUNT_T_EMPTY_PATH
	}
	return unix.MoveMount(fd, "", dirfd, path, flags)
}

// bind clones the host's mount at Source and checks that it still is what the
// supervisor looked at: someone else may own a directory on the way.
func (b *Builder) bind(o *wire.Op) error {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if o.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	from, path := unix.AT_FDCWD, o.Source
	if o.Ino != 0 {
		src, err := b.checked(o)
		if err != nil {
			return err
		}
		defer unix.Close(src)
		from, path, flags = src, "", flags|unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(from, path, flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.attach(fd, o)
}

// checked opens the source that was looked at. Its path had no links then, so a
// link on it now was put there since, to mount what nobody judged.
func (b *Builder) checked(o *wire.Op) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, o.Source, how)
	if err == nil {
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && (st.Ino != o.Ino || uint64(st.Dev) != o.Dev) {
			err = unix.ESTALE
		}
		if err != nil {
			unix.Close(fd)
		}
	}
	if err == unix.ELOOP || err == unix.ESTALE {
		err = &Error{Op: Name(o), Errno: unix.ESTALE, Note: "the source was replaced by another file since it was checked"}
	}
	return fd, err
}

// inner binds a directory of the new root to a second place.
func (b *Builder) inner(o *wire.Op) error {
	src, err := b.openat(o.Source, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(src)
	fd, err := unix.OpenTree(src, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.attach(fd, o)
}

// attach gives a detached mount its attributes and moves it onto Target.
func (b *Builder) attach(fd int, o *wire.Op) error {
	if err := setattr(fd, o.Attr, true); err != nil {
		return err
	}
	target, err := b.mountPoint(fd, o.Target)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	b.covered(o.Target)
	return moveMount(fd, target, "")
}

func (b *Builder) tmpfs(o *wire.Op) error {
	return b.filesystem(o, "tmpfs", sizeOptions(o))
}

func (b *Builder) filesystem(o *wire.Op, fstype string, opts []option) error {
	fd, err := newMount(fstype, opts, o.Attr)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	target, err := b.mountPoint(fd, o.Target)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	b.covered(o.Target)
	return moveMount(fd, target, "")
}

// pivot makes the tmpfs the root and lets go of the host's. pivot_root(".", ".")
// stacks the old root on top of the new one, from where it is detached without
// a directory to put it in (pivot_root(2), NOTES).
func (b *Builder) pivot() error {
	if err := unix.Fchdir(b.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return &Error{Op: "detach the host's root", Errno: err.(unix.Errno)}
	}
	return unix.Chdir("/")
}
