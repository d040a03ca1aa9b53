package boxinit

import (
	"sandglass/internal/sys"
	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Landlock is a second opinion on what the mounts, the capabilities and the
// namespaces have decided already: should one of those fail, the program still
// writes nowhere but where the plan says, signals nobody but its own, and
// connects to no abstract socket of others. Reading is not handled: what is in
// the root may be read. TCP is not either: programs talk to themselves over
// loopback, and the network namespace has nothing else.

// leastABI is the first version that can allow a file to be moved between two
// directories (Linux 5.19). With version 1 every such rename is refused, which
// breaks ordinary programs; there Landlock is left out, and reported as absent.
const leastABI = 2

// Rights of every version from leastABI on, and later ones with their version.
const (
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	truncateABI = 3 // Linux 6.2
	scopeABI    = 6 // Linux 6.12
	quietABI    = 7 // Linux 6.15
	scopes      = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	// A program cannot be allowed device files: nothing inside could need one.
	deniedRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	fileRights   = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// prepareLandlock makes the ruleset that the program's process puts itself
// under. Paths are looked up in the finished root, without links.
func prepareLandlock(b *box) error {
	b.landlock = -1
	abi := sys.LandlockABI()
	if abi < leastABI || len(b.cfg.Writable) == 0 {
		return nil
	}
	handled, scoped := uint64(writeRights), uint64(0)
	if abi >= truncateABI {
		handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= scopeABI {
		scoped = scopes
	}
	fd, err := sys.LandlockRuleset(handled, scoped)
	if err != nil {
		return err
	}
	for _, path := range b.cfg.Writable {
		// A mount of the caller's may cover the place where one would be. What is
		// not there is not allowed.
		if err := allowWrites(fd, path, handled); err != nil && err != unix.ENOENT {
			unix.Close(fd)
			return &mount.Error{Op: "landlock: allow " + path, Errno: err.(unix.Errno)}
		}
	}
	if err := allowQueues(b, fd, handled&fileRights); err != nil {
		unix.Close(fd)
		return err
	}
	b.landlock, b.landlockABI = fd, abi
	return nil
}

// allowQueues lets the program use POSIX message queues. Their file system is
// the IPC namespace's own and mounted nowhere, so no path leads to it. The mount
// is dropped in closeDescriptors: the kernel takes its time for that.
func allowQueues(b *box, ruleset int, access uint64) error {
	fd, err := mount.Detached("mqueue", wire.NoSuid|wire.NoDev|wire.NoExec)
	if err == unix.ENODEV {
		return nil // a kernel without queues
	}
	if err == nil {
		b.queues = fd
		err = sys.LandlockAllow(ruleset, fd, access)
	}
	if err != nil {
		return &mount.Error{Op: "landlock: allow message queues", Errno: err.(unix.Errno)}
	}
	return nil
}

func allowWrites(ruleset int, path string, handled uint64) error {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	access := handled &^ deniedRights
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileRights
	}
	return sys.LandlockAllow(ruleset, fd, access)
}

// landlockFlags keep the program from filling the host's audit log through
// domains of its own making.
func landlockFlags(abi int) uintptr {
	if abi >= quietABI {
		return unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF
	}
	return 0
}
