package artifacts

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// resolveSource is how a name of the source resolves: it cannot leave its
// directory, by no kind of link and over no mount.
const resolveSource = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// resolveDest leaves mounts alone: those in the destination are the caller's.
const resolveDest = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openFlags never wait (a lease, a FIFO) and never take a terminal.
const openFlags = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// retry repeats a system call that a signal interrupted: Go preempts with
// signals, and not every file system restarts.
func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if err != unix.EINTR {
			return v, err
		}
	}
}

func openat2(dir int, name string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Resolve: resolve}
	return retry(func() (int, error) { return unix.Openat2(dir, name, &how) })
}

// pinEntry pins one name of dir and says what it is. A link is pinned itself.
func (c *collector) pinEntry(dir int, name string) (int, *unix.Stat_t, error) {
	// Only a broken or hostile file system lists such a name.
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return -1, nil, unix.EINVAL
	}
	pin, err := c.open(dir, name, unix.O_PATH)
	if err != nil {
		return -1, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(pin, &st); err != nil {
		unix.Close(pin)
		return -1, nil, err
	}
	return pin, &st, nil
}

// open is openat2 of a directory or name of the program's. What is not the
// caller's to open, because the sandbox had an id of its own, is opened by the
// owner of the sandbox's user namespace.
func (c *collector) open(dir int, name string, flags int) (int, error) {
	fd, err := openat2(dir, name, flags, resolveSource)
	if err == unix.EACCES && c.owned != nil {
		how := unix.OpenHow{Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Resolve: resolveSource}
		return retry(func() (int, error) { return c.owned.Open(dir, name, &how) })
	}
	return fd, err
}

// reopen opens the pinned regular file for reading. The way is /proc's magic
// link, because opening the name again could meet another file, and opening a
// swapped-in device would already run its driver's open.
func (c *collector) reopen(pin int, st *unix.Stat_t) (int, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(c.proc, "fd/"+strconv.Itoa(pin), unix.O_RDONLY|openFlags, 0)
	})
	if err == unix.EACCES && c.owned != nil {
		// Not by c.proc: from within the namespace this process is not to be looked into.
		how := unix.OpenHow{Flags: unix.O_RDONLY | openFlags}
		fd, err = retry(func() (int, error) { return c.owned.Open(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(pin), &how) })
	}
	if err != nil {
		return -1, err
	}
	var now unix.Stat_t
	err = unix.Fstat(fd, &now)
	if err == nil && (now.Dev != st.Dev || now.Ino != st.Ino || now.Mode&unix.S_IFMT != unix.S_IFREG) {
		err = unix.ESTALE
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// unlock gives the owner bits of what is pinned, if err is for the want of them:
// the program has taken them from its own files, which an ordinary caller, whose
// id the program has, could not read then. It says whether to try again. What is
// changed is the pinned inode, by /proc's link to it, whatever has its name now;
// and nobody but the collection will ever see it.
func (c *collector) unlock(pin int, bits uint32, err error) bool {
	var st unix.Stat_t
	if err != unix.EACCES || unix.Fstat(pin, &st) != nil || int(st.Uid) != os.Geteuid() || st.Mode&bits == bits {
		return false
	}
	return unix.Fchmodat(c.proc, "fd/"+strconv.Itoa(pin), st.Mode&0o777|bits, 0) == nil
}

// readDir is openList of a directory that may be locked.
func (c *collector) readDir(pin int) (int, []string, error) {
	fd, names, err := c.openList(pin)
	if c.unlock(pin, 0o500, err) {
		return c.openList(pin)
	}
	return fd, names, err
}

// openList opens the pinned directory for reading and lists at most as many names
// as there is room for, bytewise sorted. One of a million names costs no more.
func (c *collector) openList(pin int) (int, []string, error) {
	max := c.room()
	fd, err := c.open(pin, ".", unix.O_RDONLY|unix.O_DIRECTORY|openFlags)
	if err != nil {
		return -1, nil, err
	}
	var names []string
	buf := make([]byte, 8<<10)
	for len(names) < max {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, buf) })
		if err != nil {
			unix.Close(fd)
			return -1, nil, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], max-len(names), names)
	}
	slices.Sort(names)
	return fd, names, nil
}

// openProc pins /proc/self. A directory that is not procfs is refused: its
// "magic links" would be links of somebody's.
func openProc() (int, error) {
	fd, err := unix.Open("/proc/self", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, refusal.Newf("collecting artifacts needs /proc: %v", err).Hint("mount -t proc proc /proc")
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		unix.Close(fd)
		return -1, refusal.Newf("collecting artifacts needs /proc: what is mounted there is not procfs").Hint("mount -t proc proc /proc")
	}
	return fd, nil
}

// needOpenat2 tells a kernel (before 5.6) or an outer container's filter that
// lacks openat2. There is no second way in: a walk without RESOLVE_NO_XDEV
// would quietly be a weaker one.
func needOpenat2(proc int) error {
	fd, err := openat2(proc, ".", unix.O_PATH|unix.O_DIRECTORY, resolveSource)
	if err != nil {
		return refusal.Newf("collecting artifacts needs the system call openat2 (linux 5.6), which this host refuses: %v", err)
	}
	unix.Close(fd)
	return nil
}

// readUmask reads the caller's umask without setting it, which would race with
// other threads that create files. Where it cannot be read nothing is given to
// group and other.
func readUmask(proc int) uint32 {
	const private = 0o077
	fd, err := unix.Openat(proc, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return private
	}
	defer unix.Close(fd)
	buf := make([]byte, 512) // Umask is the second line
	n, err := retry(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return private
	}
	for line := range strings.Lines(string(buf[:n])) {
		if v, ok := strings.CutPrefix(line, "Umask:"); ok {
			if mask, err := strconv.ParseUint(strings.TrimSpace(v), 8, 32); err == nil {
				return uint32(mask)
			}
		}
	}
	return private
}
