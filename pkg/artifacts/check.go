package artifacts

import (
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// Check refuses, before anything runs, a destination that Collect could not use
// afterwards, when the sandbox and its files are gone: the directory dest, or
// the parent that it will be created in, must exist and be writable. It also
// refuses a host without openat2 or /proc. It creates nothing. force is the one
// that Collect will get; which names collide is known only after the run, so
// today it changes nothing. Every error is a *refusal.Error.
func Check(dest string, force bool) error {
	proc, err := openProc()
	if err != nil {
		return err
	}
	defer unix.Close(proc)
	if err := needOpenat2(proc); err != nil {
		return err
	}
	if dest == "" {
		return refusal.Newf("artifact destination is empty")
	}
	var st unix.Stat_t
	err = unix.Stat(dest, &st)
	if err == nil {
		return checkDir(dest, &st)
	}
	if err != unix.ENOENT {
		return refusal.Newf("artifact destination %s: %v", quote(dest), err)
	}
	if unix.Lstat(dest, &st) == nil {
		return refusal.Newf("artifact destination %s is a symbolic link to nothing", quote(dest)).Hint("rm -- %s", shellQuote(dest))
	}
	return checkParent(dest)
}

// checkParent looks at the directory that dest will be made in.
func checkParent(dest string) error {
	parent := parentOf(dest)
	var st unix.Stat_t
	switch err := unix.Stat(parent, &st); err {
	case nil:
		return checkDir(parent, &st)
	case unix.ENOENT:
		return refusal.Newf("artifact destination %s: its parent directory %s does not exist", quote(dest), quote(parent)).
			Hint("mkdir -p -- %s", shellQuote(parent))
	default:
		return refusal.Newf("artifact destination %s: parent directory: %v", quote(dest), err)
	}
}

func checkDir(path string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return refusal.Newf("artifact destination: %s is a %s, not a directory", quote(path), typeOf(st.Mode))
	}
	// The effective id is what Collect will act with.
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		r := refusal.Newf("artifact destination: directory %s is not writable: %v", quote(path), err)
		if err == unix.EACCES {
			r.Hint("ls -ld -- %s", shellQuote(path))
		}
		return r
	}
	return nil
}

// parentOf cuts the last component and cleans nothing: "a/../b" is not "b" where
// a is a link.
func parentOf(path string) string {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0:
		return "."
	case i == 0:
		return "/"
	}
	return path[:i]
}

// openDest opens the destination, following links, and makes its last component
// if that is missing.
func openDest(dest string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Open(dest, flags, 0)
	if err != unix.ENOENT || dest == "" {
		return fd, err
	}
	if err := unix.Mkdir(dest, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return unix.Open(dest, flags, 0)
}

// shellQuote makes one word for a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
