package launch

import (
	"os"
	"slices"
	"syscall"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Realize opens what the items need on the host's side and fills
// Config.Mounts. For a root caller the sources become detached mounts here:
// init's unprivileged id might not reach them by path.
func (b *Box) Realize(items []rootfs.Item) error {
	r := &realizer{box: b, idmap: -1}
	defer r.close()
	b.Config.Mounts = slices.Grow(b.Config.Mounts, len(items))
	for i := range items {
		op, err := r.one(&items[i])
		if err != nil {
			return err
		}
		b.Config.Mounts = append(b.Config.Mounts, op)
	}
	return nil
}

type realizer struct {
	box   *Box
	idmap int // user namespace for id-mapped mounts of idmapOf's owner
	uid   uint32
	gid   uint32

	memory   *os.File // of content
	memoryFD int32    // its number for init
	filled   uint64
}

func (r *realizer) close() {
	if r.idmap >= 0 {
		unix.Close(r.idmap)
	}
}

func (r *realizer) one(it *rootfs.Item) (wire.Op, error) {
	op := it.Op
	switch {
	case op.Kind == wire.OpCopy:
		if it.File != nil {
			// Opened when it was judged: its name could be another's by now. The plan keeps
			// its own descriptor, for another sandbox if this one is gone.
			fd, err := unix.FcntlInt(it.File.Fd(), unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				return op, refusal.Newf("%s: %v", refusal.Word(it.File.Name()), err)
			}
			op.FD = r.box.AddFD(fd, it.File.Name())
			break
		}
		if err := r.content(&op, it.Content); err != nil {
			return op, err
		}
	case op.Kind == wire.OpBind && it.Open && r.box.Identity.Mapped && !r.box.Identity.helped():
		fd, err := r.tree(it)
		if err != nil {
			return op, err
		}
		op.Kind, op.FD = wire.OpTree, r.box.AddFD(fd, op.Source)
		op.Source = ""
	}
	return op, nil
}

// content puts the bytes of a file that is copied in into one memory file for
// all of them: a request may bring a thousand, and init has descriptors for less.
func (r *realizer) content(op *wire.Op, data []byte) error {
	if r.memory == nil {
		fd, err := unix.MemfdCreate("code", unix.MFD_CLOEXEC)
		if err != nil {
			return refusal.Newf("memfd_create: %v", err)
		}
		r.memory = os.NewFile(uintptr(fd), "code")
		r.memoryFD = r.box.AddFile(r.memory)
	}
	if _, err := r.memory.Write(data); err != nil {
		return refusal.Newf("memfd: %v", err)
	}
	op.FD, op.Offset = r.memoryFD, r.filled
	r.filled += uint64(len(data))
	return nil
}

// tree clones the mount at the source, checks that it is what was planned, and
// gives it its attributes and, where asked, the id mapping.
func (r *realizer) tree(it *rootfs.Item) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	src, err := unix.Openat2(unix.AT_FDCWD, it.Source, how)
	if err != nil {
		return -1, refuseMount(it.Source, "openat2", err)
	}
	defer unix.Close(src)
	var st unix.Stat_t
	if err := unix.Fstat(src, &st); err != nil {
		return -1, refusal.Newf("%s: %v", refusal.Word(it.Source), err)
	}
	if it.Ino != 0 && (st.Ino != it.Ino || uint64(st.Dev) != it.Dev) {
		return -1, refusal.Newf("%s was replaced by another file since it was checked", refusal.Word(it.Source))
	}
	fd, err := unix.OpenTree(src, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, refuseMount(it.Source, "open_tree", err)
	}
	if err := r.attributes(fd, it, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// CannotMapIDs is in the refusal of a source on such a file system.
const CannotMapIDs = "its file system cannot map ids"

func (r *realizer) attributes(fd int, it *rootfs.Item, st *unix.Stat_t) error {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if it.Attr&wire.ReadOnly != 0 {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if it.IDMap {
		ns, err := r.namespace(st)
		if err != nil {
			return err
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(ns)
	}
	err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr)
	if err == nil {
		return nil
	}
	if it.IDMap && (err == unix.EINVAL || err == unix.EPERM) {
		if !it.Offered && (!worldReadable(st) || it.Attr&wire.ReadOnly == 0) {
			return refusal.Newf("%s: "+CannotMapIDs+" (%v), so the sandbox's own id could not read or write it", refusal.Word(it.Source), err).
				Hint("cp -a -- %s /var/tmp/   # to a file system that can: ext4, xfs, btrfs, tmpfs (Linux 6.3)", refusal.Shell(it.Source)).
				Hint("chmod -R a+rX -- %s   # or let everybody read it", refusal.Shell(it.Source))
		}
		attr.Attr_set &^= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = 0
		r.box.Unmapped = append(r.box.Unmapped, it.Source)
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr)
	}
	if err != nil {
		return refuseMount(it.Source, "mount_setattr", err)
	}
	return nil
}

func refuseMount(path, call string, err error) *refusal.Error {
	path = refusal.Word(path)
	r := refusal.Newf("%s: %s: %v", path, call, err)
	// openat2 asks for the file's own permissions, which the errno says enough of.
	if errno, ok := err.(syscall.Errno); ok && (call != "openat2" || errno == unix.ENOSYS) {
		if c := causes.HostMountFailed(errno); c.Text != "" {
			r = refusal.Newf("%s: %s: %v (%s)", path, call, err, c.Text)
			r.Hints = c.Hints
		}
	}
	return r
}

func worldReadable(st *unix.Stat_t) bool {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return st.Mode&0o005 == 0o005
	}
	return st.Mode&0o004 != 0
}

// namespace is a user namespace that maps the source's owner to the sandbox's
// own id, kept for the next source of the same owner.
func (r *realizer) namespace(st *unix.Stat_t) (int, error) {
	if r.idmap >= 0 && r.uid == st.Uid && r.gid == st.Gid {
		return r.idmap, nil
	}
	r.close()
	id := r.box.Identity
	fd, err := sys.UserNamespace(int(st.Uid), id.HostUID, int(st.Gid), id.HostGID)
	if err != nil {
		r.idmap = -1
		if e := lacksCap(err, "SYS_PTRACE", toLook); e != nil {
			return -1, e
		}
		return -1, refusal.Newf("id-mapped mount: cannot make the mapping's user namespace: %v", err)
	}
	r.idmap, r.uid, r.gid = fd, st.Uid, st.Gid
	return fd, nil
}
