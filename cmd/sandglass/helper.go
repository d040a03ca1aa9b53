package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/verbs"
)

// imageCommand becomes sandglass-image: what reads archives is not linked here.
func imageCommand(args []string) int {
	if len(args) == 0 {
		return fail(refusal.Newf("image: what to do is missing").Hint("sandglass image list").Hint("sandglass image --help"))
	}
	return become("image", args)
}

// mcpCommand becomes sandglass-mcp: neither is a server of HTTP.
func mcpCommand(args []string) int { return become("mcp", args) }

// become goes on as the binary that does a verb's work and lies beside this one.
func become(verb string, args []string) int {
	if len(args) > 0 && slices.Contains([]string{"-h", "--help"}, args[len(args)-1]) {
		return emit(verbs.Find(verb).HelpOn(args))
	}
	helper := "sandglass-" + verb
	path, err := hostpath.Beside(helper)
	if err != nil {
		return fail(refusal.Newf("%s: where this binary lies cannot be told: %v", verb, err))
	}
	fd, err := hostpath.Program(path)
	if err != nil {
		return fail(refusal.Newf("%s: %s: %v", verb, refusal.Word(path), err).
			Hint("install -m 755 %s %s   # from the same build as sandglass", helper, refusal.Shell(filepath.Dir(path)+"/")))
	}
	// By its descriptor: it is what was looked at.
	err = unix.Exec("/proc/self/fd/"+strconv.Itoa(fd), append([]string{helper}, args...), os.Environ())
	return fail(refusal.Newf("%s: %s: %v", verb, refusal.Word(path), err))
}
