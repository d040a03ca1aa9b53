package hostpath

import (
	"io"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Table is the list of this process's mounts at a moment.
type Table struct{ mounts []mountPoint }

// tables is the last list, and what it was read from.
var tables struct {
	sync.Mutex
	open bool
	fd   int
	last *Table
}

// Mounts is the list as it is now: the same one as before while nothing has changed.
// The kernel tells that by one poll(2) of the file (proc_pid_mountinfo(5)): of a mount
// that comes, goes, moves or gets other attributes. Of a file system's own options
// (fsconfig(2)) it tells nothing; they are the same for every mount of it, also for one
// that was made of this one before.
func Mounts() (*Table, error) {
	t := &tables
	t.Lock()
	defer t.Unlock()
	if !t.open {
		fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		t.fd, t.open = fd, true
	}
	// Asked before it is read: what changes meanwhile is told the next time.
	changed, err := changed(t.fd)
	if err != nil || t.last != nil && !changed {
		return t.last, err
	}
	t.last = nil
	text, err := readAll(t.fd)
	if err != nil {
		return nil, err
	}
	t.last = &Table{mounts: parseMounts(text)}
	return t.last, nil
}

func changed(fd int) (bool, error) {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
	for {
		n, err := unix.Poll(p, 0)
		if err != unix.EINTR {
			return n > 0, err
		}
	}
}

// readAll reads a file of /proc from its beginning.
func readAll(fd int) (string, error) {
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return "", err
	}
	var text strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n == 0:
			return text.String(), nil
		default:
			text.Write(buf[:n])
		}
	}
}

// About is what the list says of paths without links: of the mounts that they lie in
// (or would, without others over those), and of all below them. It is the same text if
// and only if nothing of that has changed.
func (t *Table) About(paths []string) string {
	var b strings.Builder
	for i := range t.mounts {
		m := &t.mounts[i]
		for _, p := range paths {
			if within(p, m.point) || within(m.point, p) {
				b.WriteString(m.line)
				break
			}
		}
	}
	return b.String()
}
