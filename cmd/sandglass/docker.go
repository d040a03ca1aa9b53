package main

import (
	"strings"

	"sandglass/internal/refusal"
)

// elsewhere is the command that is meant by one of docker's about images, "" where there
// is none.
func elsewhere(name string) (verb string, docker bool) {
	switch name {
	case "build":
		return "image build", true
	case "load", "import":
		return "image import", true
	case "images":
		return "image list", true
	case "rmi":
		return "image rm", true
	case "save":
		return "image export", true
	case "inspect":
		return "image show", true
	}
	return "", name == "pull"
}

// notACommand refuses a command that there is not.
func notACommand(args []string) error {
	e := refusal.Newf("unknown command %q", args[0])
	verb, docker := elsewhere(args[0])
	switch {
	case !docker:
		return e.Hint("sandglass run -- %s   # to run it in a sandbox", shown(args)).Hint("sandglass --help")
	case verb == "":
		return e.Hint("sandglass image import --name NAME FILE   # of docker save or skopeo: there is no registry here").
			Hint("sandglass image build python   # of Debian's packages").
			Hint("sandglass image --help")
	case args[0] == "save":
		return e.Hint("sandglass image export NAME DIR   # an OCI layout").Hint("sandglass image --help")
	case args[0] == "build":
		return e.Hint("sandglass image build python   # or another recipe: Dockerfiles are not read").Hint("sandglass image --help")
	}
	line := "sandglass " + verb
	for _, w := range args[1:] {
		if args[0] != "images" && !strings.HasPrefix(w, "-") { // a flag of docker's is none here
			line += " " + refusal.Shell(w)
		}
	}
	return e.Hint("%s", line).Hint("sandglass image --help")
}
