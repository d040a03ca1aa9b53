package main

import (
	"os"
	"strings"

	"sandglass/internal/refusal"
)

// notACommand refuses a command that there is not. Of docker's about images it says
// which one is meant.
func notACommand(args []string) error {
	e, verb := refusal.Newf("unknown command %q", args[0]), ""
	switch args[0] {
	case "pull":
		return e.Hint("sandglass image import --name NAME FILE   # of docker save or skopeo: there is no registry here").
			Hint("sandglass image build python   # of Debian's packages").
			Hint("sandglass image --help")
	case "save":
		return e.Hint("sandglass image export NAME DIR   # an OCI layout").Hint("sandglass image --help")
	case "build":
		return e.Hint("sandglass image build python   # or another recipe: Dockerfiles are not read").Hint("sandglass image --help")
	case "load", "import":
		verb = "import"
	case "images":
		verb = "list"
	case "rmi":
		verb = "rm"
	case "inspect":
		verb = "show"
	default:
		line := "-- " + refusal.ShellLine(args[0], args[1:]...)
		if st, err := os.Stat(args[0]); err == nil && st.Mode().IsRegular() {
			line = refusal.ShellLine(args[0], args[1:]...)
		}
		return e.Hint("sandglass run %s   # to run it in a sandbox", line).Hint("sandglass --help")
	}
	line := "sandglass image " + verb
	for _, w := range args[1:] {
		if verb != "list" && !strings.HasPrefix(w, "-") { // a flag of docker's is none here
			line += " " + refusal.Shell(w)
		}
	}
	return e.Hint("%s", line).Hint("sandglass image --help")
}
