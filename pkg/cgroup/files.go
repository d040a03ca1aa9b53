package cgroup

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/doctor/causes"
)

// cause is why this host cannot give something, and what would change that.
type cause struct {
	what  string
	hints []string
}

func (c *cause) Error() string { return c.what }

func because(what string, hints ...string) *cause { return &cause{what, hints} }

// refuse turns a cause into a refusal for a command that needs the group itself.
func (c *cause) refuse() *refusal.Error {
	r := refusal.Newf("%s", c.what)
	for _, h := range c.hints {
		r.Hint("%s", h)
	}
	return r
}

// explain words an errno of an operation on a cgroup file system.
func explain(op, path string, err error) *cause {
	what := op + " " + path + ": " + err.Error()
	switch err {
	case unix.EROFS:
		return because("the cgroup mount is read-only: "+what, causes.ReadOnlyCgroup(defaultRoot)...)
	case unix.EACCES, unix.EPERM:
		return because(nobodys()+what, causes.OwnGroup()...)
	case unix.ENOSPC, unix.EAGAIN:
		return because(what + " (cgroup.max.descendants or cgroup.max.depth of a group above?)")
	}
	return because(what)
}

// nobodys opens the cause for an ordinary user and for root of a container of
// theirs: that is what they lack, the path of somebody else's group comes after it.
func nobodys() string {
	if hostsRoot() {
		return ""
	}
	return "no control group of your own: "
}

// hostsRoot says that the caller is root, and of no container of an ordinary user.
func hostsRoot() bool { return os.Geteuid() == 0 && !causes.InUserNamespace() }

// retry repeats a system call that a signal interrupted: the Go runtime sends
// itself SIGURG at any time.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func openAt(dir int, name string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		return err
	})
	return fd, err
}

// writeAt writes a value to an existing file. There is no O_CREAT: on
// something that is no cgroup file system it fails, where a new plain file
// would look like a limit.
func writeAt(dir int, name, value string) error {
	fd, err := openAt(dir, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return retry(func() error {
		_, err := unix.Write(fd, []byte(value))
		return err
	})
}

const maxSmall = 16 << 10 // io.max of many devices; the others are below 1 KiB

// readAt reads a small file, at most maxSmall bytes.
func readAt(dir int, name string) (string, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var buf [1024]byte
	return readFD(fd, buf[:], maxSmall)
}

// readFD reads fd from its start to its end, or to max bytes.
func readFD(fd int, buf []byte, max int) (string, error) {
	var s []byte
	for {
		n, err := 0, error(nil)
		err = retry(func() error {
			n, err = unix.Pread(fd, buf, int64(len(s)))
			return err
		})
		if err != nil {
			return "", err
		}
		s = append(s, buf[:n]...)
		if n == 0 || len(s) >= max {
			return string(s[:min(len(s), max)]), nil
		}
	}
}

func readPath(path string, max int) (string, error) {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return readFD(fd, make([]byte, 8<<10), max)
}

func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// field finds "key N" in a flat keyed file; -1 if it is not there.
func field(text, key string) int64 {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, " "); ok && k == key {
			return number(v)
		}
	}
	return -1
}

// number parses one value; "max" and anything else that is no number is -1.
func number(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// pause is one step of a bounded wait where the kernel offers no event. It
// grows from 50 µs to 5 ms, and is false when the deadline has passed.
func pause(step int, deadline time.Time) bool {
	if !time.Now().Before(deadline) {
		return false
	}
	time.Sleep(min(50*time.Microsecond<<min(step, 7), 5*time.Millisecond))
	return true
}
