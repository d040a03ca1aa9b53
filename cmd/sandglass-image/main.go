// Command sandglass-image imports and builds images for sandglass run, and keeps
// the store of them. It is a binary of its own, which `sandglass image` starts: what reads
// archives and unpacks them is linked here and nowhere else.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/image/child"
	"sandglass/pkg/verbs"
)

func main() {
	child.Main()
	unix.Umask(0o077) // an image may hold what is not for everybody
	os.Exit(dispatch(os.Args[1:]))
}

// usage is that of sandglass image.
func usage() string { return verbs.Find("image").Usage() }

func dispatch(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage())
		return refusal.ExitRefused
	}
	if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "--help" }) || args[0] == "help" {
		return emit(verbs.Find("image").HelpOn(args))
	}
	verbs := map[string]func([]string) (int, error){
		"import": importVerb, "list": listVerb, "ls": listVerb, "show": showVerb, "verify": verifyVerb,
		"build": buildVerb, "from-host": fromHostVerb, "rm": removeVerb, "prune": pruneVerb, "export": exportVerb,
	}
	verb := verbs[args[0]]
	if verb == nil {
		return fail(unknown(args[0], args[1:]))
	}
	code, err := 0, places(os.Getenv)
	if err == nil {
		code, err = verb(args[1:])
	}
	if err != nil {
		return fail(err)
	}
	return code
}

// emit writes an answer. One that is lost must not look like a good end.
func emit(text string) int {
	if _, err := os.Stdout.WriteString(text); err != nil {
		if errors.Is(err, unix.EPIPE) {
			return 128 + int(unix.SIGPIPE)
		}
		return fail(refusal.Newf("writing stdout: %v", err).Hint("df -h .   # if stdout is a file of this directory"))
	}
	return 0
}

// fail prints an error as sandglass does: one line, and hints to paste.
func fail(err error) int {
	code, hints := refusal.ExitRefused, []string{"sandglass image --help"}
	var r *refusal.Error
	if errors.As(err, &r) {
		code = r.Exit
		if len(r.Hints) > 0 {
			hints = r.Hints
		}
	}
	os.Stderr.WriteString(refusal.Text(err.Error(), hints))
	return code
}
