package mount

import (
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Later is the root as it can still be written, by descriptors alone: a mount of
// the same file system that is attached nowhere, so that no path leads to it, and
// that the freeze does not meet. The program has no descriptor of init's.
type Later struct {
	fd int // -1 for none
	// Of an OpText: the directory of the text, its file and its FIFO, both to be
	// written to. Nil without one.
	Text []int
}

// KeepLater keeps a way to write to the root after it has become read-only. It
// stands right after OpRoot: nothing is mounted below the root then that the
// kernel would have to leave out.
func (b *Builder) KeepLater() error {
	fd, err := unix.OpenTree(b.root, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return &Error{Op: "clone the root", Errno: err.(unix.Errno)}
	}
	b.later = &Later{fd: fd}
	return nil
}

// Later is what KeepLater has kept, nil for nothing. It is the caller's to close.
func (b *Builder) Later() *Later { return b.later }

// Close lets go of it. What is in Text is somebody else's.
func (l *Later) Close() {
	if l != nil && l.fd >= 0 {
		unix.Close(l.fd)
		l.fd = -1
	}
}

// Dup is a descriptor for the same.
func (l *Later) Dup() (int, error) {
	if l == nil {
		return -1, unix.EBADF
	}
	return unix.FcntlInt(uintptr(l.fd), unix.F_DUPFD_CLOEXEC, 3)
}

// Make makes files and links of the root itself, which is read-only for everybody
// else.
func (l *Later) Make(ops []wire.Op) error { return makeBelow(l.fd, ops) }

// CopyInto makes files below directories that lie on the present root, as they
// would have been made before pivot_root.
func CopyInto(ops []wire.Op) error {
	if len(ops) == 0 {
		return nil
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return makeBelow(root, ops)
}

func makeBelow(root int, ops []wire.Op) error {
	b := &Builder{root: root, dir: -1, umask: unix.Umask(0)}
	defer unix.Umask(b.umask)
	defer b.forget()
	for i := range ops {
		if ops[i].Kind != wire.OpCopy && ops[i].Kind != wire.OpLink {
			return unix.EINVAL
		}
		if err := b.Apply(&ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// makeText prepares the place of a text that is to come. Who opens the target
// now waits for its first byte; TextFile takes its place before that byte is
// written, so that who opens it later finds an ordinary file. It is written to by
// descriptors of the mount that is attached nowhere: one of the root would keep
// the root from becoming read-only, and lead there.
func (b *Builder) makeText(o *wire.Op) error {
	if b.later == nil || b.later.Text != nil {
		return unix.EINVAL
	}
	_, name, err := b.parent(o.Target)
	if err != nil {
		return err
	}
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: beneath}
	dir, err := unix.Openat2(b.later.fd, up(relative(o.Target)), how)
	if err != nil {
		return err
	}
	file, fifo, err := textFiles(dir, name, o.Mode)
	if err != nil {
		unix.Close(dir)
		return err
	}
	b.later.Text = []int{dir, file, fifo}
	return nil
}

func textFiles(dir int, name string, mode uint32) (file, fifo int, err error) {
	const write = unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if err := unix.Mknodat(dir, name, unix.S_IFIFO|0o600, 0); err != nil {
		return -1, -1, err
	}
	// A FIFO that nobody reads cannot be opened for writing alone.
	both, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	defer unix.Close(both)
	if fifo, err = unix.Openat(dir, name, write|unix.O_NONBLOCK, 0); err != nil {
		return -1, -1, err
	}
	if file, err = unix.Openat(dir, wire.TextFile, write|unix.O_CREAT|unix.O_EXCL, mode); err != nil {
		unix.Close(fifo)
		return -1, -1, err
	}
	return file, fifo, nil
}
