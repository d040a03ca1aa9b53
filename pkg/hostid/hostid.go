// Package hostid gives each live sandbox a host user and group id of its own,
// where the caller is root or has a range of subordinate ids, so that two
// sandboxes can neither signal, trace nor read each other even if one gets out of
// its namespaces, and no file on the host is theirs. An id is held by a lock on
// one byte of a file that only its caller may open, and free again when its
// holder ends, however it ends: there is nothing to sweep. Root's file is one of
// the kernel's own, so there is nothing to make and nothing to leave behind
// either.
package hostid

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// File carries the locks. Nobody but root may open it, for reading neither: a
// lock for reading, which needs no more, is in the way of ours, and one of the
// whole file would be all ids. It is opened for its inode alone, never read or
// written.
const File = "/proc/sys/kernel/cad_pid"

// Dir holds a file of our own where /proc/sys is read-only (in a container, in
// a service with ProtectKernelTunables=). The two files cannot see each other's
// locks, so each has its own half of the range.
const Dir = "/run/sandglass"

// ownFile is the name of the file in Dir.
const ownFile = "ids"

// The range lies above what systemd, shadow's subordinate ids and directory
// services hand out (systemd's "Users, Groups, UIDs and GIDs": 524288 to
// 1879048191 are for containers), and below 2^31.
const (
	First = 1879048192
	Count = 1 << 16
)

// ErrExhausted is that all ids of the range are in use.
var ErrExhausted = errors.New("all host ids are in use")

// ID is one held id, of a user and of a group.
type ID struct {
	N, GID int
	locks  locks
}

// locks is an open file and the first id that it holds locks for.
type locks struct {
	fd, first int
}

// half is how many ids each file holds locks for.
const half = Count / 2

// Available says whether this process may map ids of the range.
func Available() bool {
	ok, err := Look()
	return ok && err == nil
}

// Look says whether this process may map ids of the range: it is root in a user
// namespace that has them. An error says that this could not be found out: a
// root caller's sandbox must not get root's own id for that.
func Look() (bool, error) {
	if os.Geteuid() != 0 {
		return false, nil
	}
	ok, err := hasCaps()
	for _, path := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		if ok && err == nil {
			ok, err = maps(path)
		}
	}
	return ok, err
}

func hasCaps() (bool, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return false, os.NewSyscallError("capget", err)
	}
	const want = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SYS_ADMIN
	return data[0].Effective&want == want, nil
}

// maps says whether the whole range is mapped in this user namespace.
func maps(path string) (bool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(mapLines(b), func(s span) bool { return s.first <= First && s.end() >= First+Count }), nil
}

// Take holds a free id. The search starts at a place that differs between
// processes, so that two rarely try the same one.
func Take(seed int) (*ID, error) {
	l, err := openLocks()
	if err != nil {
		return nil, err
	}
	for i := range half {
		n := l.first + (seed+i)%half
		switch err := l.set(n, unix.F_WRLCK); err {
		case nil:
			return &ID{N: n, GID: n, locks: l}, nil
		case unix.EAGAIN, unix.EACCES: // in use
		default:
			unix.Close(l.fd)
			return nil, &os.PathError{Op: "lock", Path: strconv.Itoa(n), Err: err}
		}
	}
	unix.Close(l.fd)
	return nil, ErrExhausted
}

// set changes the lock on the id's byte. It belongs to the open file, not to
// the process (F_OFD_SETLK of fcntl(2)): two runs of one process exclude each
// other as well, and the kernel drops it with the last descriptor.
func (l locks) set(n int, kind int16) error {
	return unix.FcntlFlock(uintptr(l.fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: int64(n - l.first), Len: 1})
}

func openLocks() (locks, error) {
	fd, err := unix.Open(File, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		return locks{fd, First}, nil
	}
	fd, err = openOwn()
	return locks{fd, First + half}, err
}

// openOwn opens the file in Dir, both made if missing.
func openOwn() (int, error) {
	dir, err := openDir()
	if err == unix.ENOENT {
		if err := unix.Mkdir(Dir, 0o700); err != nil && err != unix.EEXIST {
			return -1, &os.PathError{Op: "mkdir", Path: Dir, Err: err}
		}
		dir, err = openDir()
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: Dir, Err: err}
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, ownFile, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: Dir + "/" + ownFile, Err: err}
	}
	return fd, nil
}

func openDir() (int, error) {
	return openPrivate(Dir, os.Geteuid(), "not a private directory of root's")
}

// openPrivate opens a directory that is owner's and that nobody else may enter.
func openPrivate(path string, owner int, foreign string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != uint32(owner) || st.Mode&0o077 != 0 {
		unix.Close(fd)
		return -1, errors.New(foreign)
	}
	return fd, nil
}

// Release frees the id.
func (id *ID) Release() {
	id.locks.set(id.N, unix.F_UNLCK)
	id.locks.set(gidBytes+id.GID, unix.F_UNLCK) // not there for root
	unix.Close(id.locks.fd)
}
