package runtimes

import (
	"path/filepath"
	"slices"
	"strings"
)

const (
	mentionMax   = 8        // names; each costs a walk through PATH
	mentionBytes = 64 << 10 // of one -c string that are looked at
)

// Mentioned lists the interpreters of the table that an argv names, as written
// and without doubles, except python, python3, node and nodejs, which a caller
// offers anyway. It looks at the base name of each word and at the words of a
// string after -c. The caller looks them up and ignores those not found.
//
// A -c string is often the model's. So only bare names are returned, never a
// path: hostile code must not choose what is mounted, other than among the
// interpreters on the caller's own PATH. The number is bounded for the same
// reason.
func Mentioned(words []string) []string {
	var names []string
	add := func(name string) {
		if len(names) == mentionMax || slices.Contains(names, name) || ofCommand(name) == nil {
			return
		}
		switch name {
		case "python", "python3", "node", "nodejs":
		default:
			names = append(names, name)
		}
	}
	code := false
	for _, w := range words {
		if code {
			for _, name := range strings.FieldsFunc(w[:min(len(w), mentionBytes)], notName) {
				add(filepath.Base(name))
			}
		} else if w != "" {
			add(filepath.Base(w))
		}
		code = isCodeFlag(w)
	}
	return names
}

// isCodeFlag: -c, -lc, -ec and the like.
func isCodeFlag(w string) bool {
	if len(w) < 2 || len(w) > 8 || w[0] != '-' || w[len(w)-1] != 'c' {
		return false
	}
	return strings.IndexFunc(w[1:], func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) < 0
}

// notName: everything that cannot be part of a path of an interpreter ends a word.
func notName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+/", r))
}
