package denials

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// maxPath is how much of a path is read. What is longer is not told.
const maxPath = 1024

// writes notes a call that would change something outside of what may be
// written. It fails in the file system, with EROFS or whatever comes before that,
// and the kernel tells nobody but the program.
//
// The path is judged as it is written down. Nothing of it is looked at: a name
// that the program chose is never followed by the supervisor.
func (w *Watch) writes(n *sys.Notification, o *observed) {
	if len(w.Writable) == 0 {
		return
	}
	for _, name := range o.names {
		text := w.pathOf(n, name)
		if text != "" {
			text = path.Clean(text)
		}
		if text == "" || w.writable(text) {
			continue
		}
		r := row{kind: "file", what: clean([]byte(text)), args: o.call, program: program(n.PID)}
		if sys.NotificationValid(w.listener, n.ID) {
			w.seen.add(r)
		}
		return
	}
}

// pathOf is a path of the call's, absolute, "" when it cannot be told.
func (w *Watch) pathOf(n *sys.Notification, at name) string {
	text := readString(int(n.PID), uintptr(n.Args[at.path]))
	if text == "" || strings.HasPrefix(text, "/") {
		return text
	}
	// The kernel's name for a directory that the program has: a link is read here,
	// and not gone through.
	link := "/cwd"
	if at.dir >= 0 && int32(n.Args[at.dir]) != unix.AT_FDCWD {
		link = "/fd/" + strconv.Itoa(int(int32(n.Args[at.dir])))
	}
	dir, err := w.readlink("/proc/" + strconv.Itoa(int(n.PID)) + link)
	if err != nil || len(dir) == maxPath || !strings.HasPrefix(dir, "/") {
		return ""
	}
	return dir + "/" + text
}

func (w *Watch) readlink(path string) (string, error) {
	buf := make([]byte, maxPath)
	got, err := unix.Readlink(path, buf)
	if err == unix.EACCES && w.Readlink != nil {
		return w.Readlink(path, maxPath)
	}
	return string(buf[:max(got, 0)]), err
}

// writable says whether a clean path lies, as it is written, in a place that may
// be written. One through /proc leads to wherever the program already is.
func (w *Watch) writable(text string) bool {
	return slices.ContainsFunc(w.Writable, func(place string) bool {
		return text == place || strings.HasPrefix(text, place+"/")
	})
}

// readString reads a string of the caller's, "" when it is not there or too long.
func readString(pid int, addr uintptr) string {
	buf := make([]byte, maxPath)
	// A string may end just before memory that is not there: what could be read
	// counts.
	got, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}, pages(addr, len(buf)), 0)
	if err != nil {
		return ""
	}
	end := bytes.IndexByte(buf[:got], 0)
	if end < 0 {
		return ""
	}
	return string(buf[:end])
}

// pages splits a range at the ends of pages: process_vm_readv(2) stops at the
// first element that it cannot read whole.
func pages(addr uintptr, size int) (list []unix.RemoteIovec) {
	page := unix.Getpagesize()
	for size > 0 {
		n := min(size, page-int(addr)%page)
		list = append(list, unix.RemoteIovec{Base: addr, Len: n})
		addr, size = addr+uintptr(n), size-n
	}
	return list
}
