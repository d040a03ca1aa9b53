package runtimes

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxLinks  = 40   // the kernel's MAXSYMLINKS
	linkBytes = 1024 // a longer link is taken for broken
)

// Constants, so that the package has nothing to initialise.
const (
	errLoop    skip = "too many symbolic links"
	errMissing skip = "it leads nowhere"
	errPlain   skip = "not a regular file"
)

// hostView is what the host image shows of the host, at the same paths.
var hostView = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// kernelDirs are made afresh inside; a path through them means something else there.
var kernelDirs = [...]string{"/proc", "/sys", "/dev"}

func inHostView(path string) bool { return underAny(path, hostView[:]) }

// underAny: path is one of dirs or below one.
func underAny(path string, dirs []string) bool {
	for _, d := range dirs {
		if under(path, d) {
			return true
		}
	}
	return false
}

func under(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// executable is nil for a regular file that the caller may execute, EACCES for
// one that it may not, and another error for anything else.
func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return unix.ENOENT
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.ENOENT
	}
	if unix.Access(path, unix.X_OK) != nil {
		return unix.EACCES
	}
	return nil
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil
}

// resolve follows every symbolic link of an absolute path and lists those it
// passed: real directory and name, and the link's text.
func resolve(path string) (real string, links []Link, err error) {
	var buf [linkBytes]byte
	todo := path
	cur := ""
	for todo != "" {
		var name string
		name, todo, _ = strings.Cut(strings.TrimLeft(todo, "/"), "/")
		switch name {
		case "", ".":
			continue
		case "..":
			cur = cur[:max(strings.LastIndexByte(cur, '/'), 0)]
			continue
		}
		n, err := unix.Readlink(cur+"/"+name, buf[:])
		if err == unix.EINVAL { // not a link
			cur += "/" + name
			continue
		}
		if err != nil || n == 0 || n == len(buf) {
			return "", nil, errMissing
		}
		if len(links) == maxLinks {
			return "", nil, errLoop
		}
		target := string(buf[:n])
		links = append(links, Link{Path: cur + "/" + name, Target: target})
		if filepath.IsAbs(target) {
			cur = ""
		}
		todo = target + "/" + todo
	}
	if cur == "" {
		cur = "/"
	}
	return cur, links, nil
}

// needed are the links that neither the host view nor a mount of in shows.
func needed(links []Link, in Interpreter) []Link {
	var out []Link
next:
	for _, l := range links {
		if inHostView(l.Path) || !in.FileOnly && in.Prefix != "" && under(l.Path, in.Prefix) || underAny(l.Path, in.Extra) {
			continue
		}
		for _, o := range out {
			if o == l {
				continue next
			}
		}
		out = append(out, l)
	}
	return out
}

// readFile reads at most max bytes of a regular file. A file in the caller's
// current directory may be anything that hostile code can plant: a FIFO must
// not block the open, and a link to a device must not be opened at all.
func readFile(path string, max int, follow bool) ([]byte, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	if follow {
		if !regular(path) {
			return nil, errPlain
		}
	} else {
		flags |= unix.O_NOFOLLOW
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return nil, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil, errPlain
		}
	}
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errPlain
	}
	buf := make([]byte, min(int64(max), st.Size))
	n := 0
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], nil
}

func regular(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}
