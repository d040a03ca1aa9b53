package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// imageHelper is that binary: what reads archives is not linked here.
const imageHelper = "sandglass-image"

// imageCommand becomes the helper.
func imageCommand(args []string) int {
	if len(args) == 0 {
		return fail(refusal.Newf("image: what to do is missing").Hint("sandglass image list").Hint("sandglass image --help"))
	}
	if slices.Contains([]string{"-h", "--help"}, args[len(args)-1]) {
		return emit(usage("image"))
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return fail(refusal.Newf("image: where this binary lies cannot be told: %v", err))
	}
	path := filepath.Join(filepath.Dir(self), imageHelper)
	fd, err := openHelper(path)
	if err != nil {
		return fail(refusal.Newf("image: %s: %v", refusal.Word(path), err).
			Hint("install -m 755 %s %s   # from the same build as sandglass", imageHelper, refusal.Shell(filepath.Dir(self)+"/")))
	}
	// By its descriptor: it is what was looked at.
	err = unix.Exec("/proc/self/fd/"+strconv.Itoa(fd), append([]string{imageHelper}, args...), os.Environ())
	return fail(refusal.Newf("image: %s: %v", refusal.Word(path), err))
}

var errHelper = errors.New("it is no program, or one that another user could change")

// openHelper opens the helper. PATH is not asked, and where sandglass was copied to a
// directory that others write to, such as /tmp, theirs is not taken for ours.
func openHelper(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	owned := st.Uid == 0 || int(st.Uid) == os.Geteuid()
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 || st.Mode&0o022 != 0 || !owned) {
		err = errHelper
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
