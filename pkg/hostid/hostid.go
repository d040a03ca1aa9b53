// Package hostid gives each live sandbox of a root caller a host user and group
// id of its own, so that two sandboxes can neither signal, trace nor read each
// other even if one gets out of its namespaces, and no file on the host is
// theirs. An id is held by a lock on a file in a directory of root's, and free
// again when its holder ends, however it ends.
package hostid

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Dir holds the locks. Only root may enter it: another user could otherwise
// hold locks and use ids up. It is removed when the last lock goes.
const Dir = "/run/sandglass"

// The range lies above what systemd, shadow's subordinate ids and directory
// services hand out (systemd's "Users, Groups, UIDs and GIDs": 524288 to
// 1879048191 are for containers), and below 2^31.
const (
	First = 1879048192
	Count = 1 << 16
)

// ErrExhausted is that all ids of the range are in use.
var ErrExhausted = errors.New("all host ids are in use")

// ID is one held id.
type ID struct {
	N    int
	file *os.File
}

// Available says whether this process may map ids of the range: it is root in
// a user namespace that has them.
func Available() bool {
	if os.Geteuid() != 0 {
		return false
	}
	return hasCaps() && maps("/proc/self/uid_map") && maps("/proc/self/gid_map")
}

func hasCaps() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return false
	}
	const want = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SYS_ADMIN
	return data[0].Effective&want == want
}

// maps says whether the whole range is mapped in this user namespace.
func maps(path string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) != 3 {
			continue
		}
		start, _ := strconv.ParseInt(string(f[0]), 10, 64)
		size, _ := strconv.ParseInt(string(f[2]), 10, 64)
		if start <= First && start+size >= First+Count {
			return true
		}
	}
	return false
}

// Take holds a free id. The search starts at a place that differs between
// processes, so that two rarely try the same one.
func Take(seed int) (*ID, error) {
	for i := range Count {
		id, err := try(First + (seed+i)%Count)
		if err != nil || id != nil {
			return id, err
		}
	}
	return nil, ErrExhausted
}

// try returns nil without an error when the id is in use.
func try(n int) (*ID, error) {
	if err := unix.Mkdir(Dir, 0o700); err != nil && err != unix.EEXIST {
		return nil, &os.PathError{Op: "mkdir", Path: Dir, Err: err}
	}
	dir, err := openDir()
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	name := strconv.Itoa(n)
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == unix.ENOENT {
		return nil, nil // the directory was removed under us: the next id makes it anew
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: Dir + "/" + name, Err: err}
	}
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || !same(dir, name, fd) {
		unix.Close(fd)
		return nil, nil
	}
	return &ID{N: n, file: os.NewFile(uintptr(fd), name)}, nil
}

// openDir refuses a directory that somebody else made.
func openDir() (int, error) {
	fd, err := unix.Open(Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: Dir, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != uint32(os.Geteuid()) || st.Mode&0o077 != 0 {
		unix.Close(fd)
		return -1, &os.PathError{Op: "open", Path: Dir, Err: errors.New("not a private directory of root's")}
	}
	return fd, nil
}

// same says that the locked file is still the one of that name: its last
// holder may have removed it between our open and our lock.
func same(dir int, name string, fd int) bool {
	var a, b unix.Stat_t
	return unix.Fstat(fd, &a) == nil && unix.Fstatat(dir, name, &b, unix.AT_SYMLINK_NOFOLLOW) == nil && a.Ino == b.Ino && a.Dev == b.Dev
}

// Release frees the id.
func (id *ID) Release() {
	os.Remove(Dir + "/" + id.file.Name())
	id.file.Close()
	os.Remove(Dir) // fails while others hold ids
}

// Sweep removes the files of holders that were killed. It costs one directory
// read when there are none.
func Sweep() int {
	dir, err := os.Open(Dir)
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(Count)
	swept := 0
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || n < First || n >= First+Count {
			continue
		}
		if id, err := try(n); err == nil && id != nil {
			id.Release()
			swept++
		}
	}
	os.Remove(Dir)
	return swept
}
