package runtimes

import (
	"path/filepath"
	"strings"
)

// shebangMax is the kernel's BINPRM_BUF_SIZE: what execve(2) reads of a script.
const shebangMax = 256

// Shebang is the first line of a script, taken apart.
type Shebang struct {
	Interpreter string   // a bare name to look up in PATH, or an absolute path
	Args        []string // before the script's own path
}

// FromShebang reads `#!/bin/sh -e`, `#!/usr/bin/env python3` and
// `#!/usr/bin/env -S python3 -u`; line may go on after its first newline. As
// with the kernel, what follows the interpreter is one argument. It is not ok
// when the kernel or env would not run it (relative path, longer than 256
// bytes) or when it does more than name an interpreter (variables, quoting):
// those are for a shell, and guessing would run something else.
func FromShebang(line []byte) (Shebang, bool) {
	s := string(line[:min(len(line), shebangMax)])
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	} else if len(line) > shebangMax {
		return Shebang{}, false
	}
	s, found := strings.CutPrefix(strings.TrimSuffix(s, "\r"), "#!")
	if !found || strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
		return Shebang{}, false
	}
	interp, arg, _ := strings.Cut(strings.ReplaceAll(strings.Trim(s, " \t"), "\t", " "), " ")
	arg = strings.Trim(arg, " ")
	// A relative interpreter is taken from the current directory: the attacker's.
	if !filepath.IsAbs(interp) || filepath.Clean(interp) != interp || interp == "/" {
		return Shebang{}, false
	}
	if interp == "/usr/bin/env" || interp == "/bin/env" {
		return fromEnv(arg)
	}
	if arg == "" {
		return Shebang{Interpreter: interp}, true
	}
	return Shebang{Interpreter: interp, Args: []string{arg}}, true
}

// fromEnv reads the one argument that the kernel gives to env.
func fromEnv(arg string) (Shebang, bool) {
	words := []string{arg}
	if rest, ok := strings.CutPrefix(arg, "-S"); ok {
		if strings.ContainsAny(rest, `'"\$#`) {
			return Shebang{}, false
		}
		words = strings.Fields(rest)
	}
	if len(words) == 0 || !bareName(words[0]) || strings.ContainsAny(words[0], "= ") || words[0][0] == '-' {
		return Shebang{}, false
	}
	if len(words) == 1 {
		return Shebang{Interpreter: words[0]}, true
	}
	return Shebang{Interpreter: words[0], Args: words[1:]}, true
}

// bareName: a file name without a directory and without control characters.
func bareName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.Contains(name, "/") && !hasControl(name)
}

func hasControl(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0
}
