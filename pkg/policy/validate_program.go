package policy

import (
	"strings"

	"sandglass/internal/refusal"
)

// The kernel's bounds on execve(2), in bytes. A string may be 32 pages with its
// NUL (MAX_ARG_STRLEN). All strings and their pointers together may fill a
// quarter of the stack limit, at least 128 KiB and at most 6 MiB.
const (
	maxArgString = 128<<10 - 1
	minArgTotal  = 128 << 10
	maxArgTotal  = 6 << 20
	// argReserve is for what is added later: PATH, HOME and the like, and the
	// interpreter's own words before a script.
	argReserve = 8 << 10
)

func checkProgram(s *Spec) error {
	p := &s.Program
	kinds := 0
	for _, set := range []bool{len(p.Command) > 0, len(p.Code) > 0, p.File != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return noProgram("nothing to run")
	case kinds > 1:
		return refusal.Newf("a command, code and a file exclude each other")
	case len(p.Command) > 0 && p.Command[0] == "":
		return refusal.Newf("the command's name is empty")
	case len(p.Command) > 0 && len(p.Args) > 0:
		return refusal.Newf("a command holds its own arguments; Args are for code and files")
	case len(p.Command) > 0 && p.Lang != "":
		return refusal.Newf("--lang: %s would run nothing: a command is started as it is", quote(p.Lang)).
			Hint("sandglass run -c CODE --lang python").Hint("sandglass run --lang python ./script")
	case len(p.Code) > 0 && p.Lang == "":
		return refusal.Newf("--code: the language is missing").Hint("--lang python")
	case len(p.Code) > MaxCode:
		return refusal.Newf("--code: %d bytes are more than %s", len(p.Code), FormatSize(MaxCode))
	case p.Lang != "" && !isName(p.Lang):
		return refusal.Newf("--lang: %s is not the name of a language", quote(p.Lang)).Hint("--lang python")
	}
	if p.File != "" {
		if why := badPath(p.File); why != "" {
			return refusal.Newf("file %s %s", quote(p.File), why)
		}
	}
	return nil
}

// checkArguments refuses here what execve would refuse inside, where the reason
// is only "E2BIG", and what a NUL would silently cut short.
func checkArguments(s *Spec) error {
	total := argReserve
	for _, list := range [][]string{s.Program.Command, s.Program.Args} {
		for i, a := range list {
			if strings.ContainsRune(a, 0) {
				return refusal.Newf("argument %d has a NUL byte", i)
			}
			if len(a) > maxArgString {
				return tooLong("argument %d is %d bytes, at most %d", i, len(a), maxArgString)
			}
			total += len(a) + 1 + 8
		}
	}
	seen := map[string]bool{}
	for _, e := range s.Env {
		name, err := envName(e)
		if err != nil {
			return where("--env", err)
		}
		if seen[name] {
			return refusal.Newf("--env: %s is given twice", quote(name))
		}
		seen[name] = true
		if len(e) > maxArgString {
			return tooLong("variable %s is %d bytes, at most %d", quote(name), len(e), maxArgString)
		}
		total += len(e) + 1 + 8
	}
	if most := argTotal(s.Limits.Stack); total > most {
		return tooLong("arguments and environment are %d bytes, at most %d", total, most)
	}
	return nil
}

func argTotal(stack int64) int {
	return int(max(minArgTotal, min(maxArgTotal, stack/4)))
}

func envName(e string) (string, error) {
	name, _, ok := strings.Cut(e, "=")
	switch {
	case !ok:
		return "", refusal.Newf("%s has no value", quote(e)).Hint("-e NAME=value")
	case name == "":
		return "", refusal.Newf("%s has no variable name", quote(e)).Hint("-e NAME=value")
	case strings.ContainsRune(e, 0):
		return "", refusal.Newf("variable %s has a NUL byte", quote(name))
	}
	return name, nil
}

func tooLong(format string, args ...any) error {
	return refusal.Newf("argument list too long: "+format, args...).Code(refusal.ExitNotExecutable).
		Hint("share large data as a file: -v \"$PWD/data:/data:ro\"").
		Hint("or pass it on stdin: sandglass run -i -- COMMAND <FILE")
}
