package hostpath

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrProgram is Program's for what is there.
var ErrProgram = errors.New("it is no program, or one that another user could change")

// Beside is the path of a program of ours that lies beside this one, links followed.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// Program opens a program of ours that lies beside this one, O_PATH, to be executed
// by its descriptor. PATH is not asked, and where sandglass was copied to a directory
// that others write to, such as /tmp, theirs is not taken for ours.
func Program(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	owned := st.Uid == 0 || int(st.Uid) == os.Geteuid()
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 || st.Mode&0o022 != 0 || !owned) {
		err = ErrProgram
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
