package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
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
	fd, err := hostpath.Program(path)
	if err != nil {
		return fail(refusal.Newf("image: %s: %v", refusal.Word(path), err).
			Hint("install -m 755 %s %s   # from the same build as sandglass", imageHelper, refusal.Shell(filepath.Dir(self)+"/")))
	}
	// By its descriptor: it is what was looked at.
	err = unix.Exec("/proc/self/fd/"+strconv.Itoa(fd), append([]string{imageHelper}, args...), os.Environ())
	return fail(refusal.Newf("image: %s: %v", refusal.Word(path), err))
}
