// Package hostpath opens the paths of the host that the caller names, each by
// what it really is and once.
//
// A directory that an earlier sandbox could write to is full of what that
// program chose, links above all: a destination that became a link to
// ~/.ssh, a script that became a link to /etc/shadow. Therefore a path is first
// freed of its links, then judged (package policy knows what is dangerous), then
// opened without following any link; and what was opened is used, never the
// name again.
package hostpath

import (
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// LinkError names the symbolic link that a path may not lead through.
type LinkError struct {
	Link    string
	Nowhere bool // it would have been followed, and leads to nothing
}

func (e *LinkError) Error() string {
	if e.Nowhere {
		return "it leads through a symbolic link to nothing"
	}
	return "it leads through a symbolic link"
}

// maxLinks is the kernel's MAXSYMLINKS.
const maxLinks = 40

// Walk is a path that will be written to, without its links. A link is followed
// only where follow says so of the directory that it lies in: anywhere else a
// program could have put it. What does not exist is left as it is named; the
// opener says so. The path is absolute.
func Walk(name string, follow func(dir string) bool) (string, error) {
	cur, todo, last := "", name, ""
	for links := 0; todo != ""; {
		var part string
		part, todo, _ = strings.Cut(strings.TrimLeft(todo, "/"), "/")
		switch part {
		case "", ".":
			continue
		case "..":
			cur = cur[:max(strings.LastIndexByte(cur, '/'), 0)]
			continue
		}
		at := cur + "/" + part
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			if last != "" && err == unix.ENOENT {
				return "", &LinkError{Link: last, Nowhere: true}
			}
			return path.Join(at, todo), nil
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			cur = at
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: name, Err: unix.ELOOP}
		}
		if !trusted(cur+"/") || !follow(path.Clean(cur+"/")) {
			return "", &LinkError{Link: at}
		}
		text, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(text, "/") {
			cur = ""
		}
		if strings.Trim(todo, "/") == "" {
			last = at // what it names must be there: nothing is made through a link
		}
		todo = text + "/" + todo
	}
	return path.Clean(cur + "/"), nil
}

// trusted says that nobody but its owner can make a link in a directory: in
// /tmp everybody can. Those of /proc are of the kernel's and lead anywhere.
func trusted(dir string) bool {
	if strings.HasPrefix(dir, "/proc/") {
		return false
	}
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && st.Mode&0o002 == 0
}
