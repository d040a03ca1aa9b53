// Package manual makes the manual pages and the completions of shells from the
// table that --help is made of. It is no part of the sandglass binary.
package manual

import (
	"slices"
	"strings"

	"sandglass/pkg/policy"
	"sandglass/pkg/verbs"
)

// File is one file to install.
type File struct {
	Name string
	Text string
}

// place is where flags may stand: behind a verb, or behind one of its own.
type place struct {
	words []string // "profile", "learn"
	flags []policy.Flag
	rest  bool // a program and its arguments follow
}

// places are all of them that have flags.
func places() (list []place) {
	for _, v := range verbs.All() {
		if f := flags(v); len(f) > 0 {
			list = append(list, place{[]string{v.Name}, f, v.Run})
		}
		for _, s := range v.Sub {
			if f := flags(s); len(f) > 0 {
				list = append(list, place{[]string{v.Name, s.Name}, f, s.Run})
			}
		}
	}
	return list
}

// flags are those that a verb takes and its help lists; its own words about one
// that run has too come first.
func flags(v verbs.Verb) []policy.Flag {
	list := slices.Clone(v.Flags)
	if !v.Run {
		return list
	}
	for _, g := range policy.Groups() {
		for _, f := range g.Flags {
			if !slices.ContainsFunc(list, func(have policy.Flag) bool { return have.Name == f.Name }) {
				list = append(list, f)
			}
		}
	}
	return list
}

// value is what a shell can offer behind a flag.
type value struct {
	words       []string
	files, dirs bool
}

// values reads what the help calls the value: none, 443|all|off, host|DIR, FILE.
func values(arg string) (v value) {
	if strings.HasPrefix(arg, "SRC:") {
		return value{files: true}
	}
	for _, part := range strings.Split(arg, "|") {
		switch {
		case part == "DIR":
			v.dirs = true
		case strings.HasPrefix(part, "FILE"), part == "OLD", part == "PATH":
			v.files = true
		case part != "" && strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") == "":
			v.words = append(v.words, part)
		}
	}
	return v
}

// single makes s one word of sh and of zsh.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
