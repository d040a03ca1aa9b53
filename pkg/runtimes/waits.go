package runtimes

import (
	"bytes"
	"slices"
)

// waiting are the languages whose interpreter can be started before there is a
// program for it: it reads its whole text in one go, from a FIFO as from a file,
// and looks at nothing of it before. Shells read line by line, and Perl, Ruby, PHP
// and Lua go back in the file; of those that compile first the start is not what
// takes the time.
var waiting = [...]string{"python", "node"}

// Waits says whether lang, by its canonical name, is one of them.
func Waits(lang string) bool { return slices.Contains(waiting[:], lang) }

// Streams says whether an interpreter of lang reads this text from a FIFO as it
// would from a file. Python seeks in a file that names another encoding than
// UTF-8 in one of its first two lines.
func Streams(lang string, text []byte) bool {
	if lang != "python" {
		return true
	}
	lines := bytes.SplitN(text, []byte("\n"), 3)
	for _, line := range lines[:min(len(lines), 2)] {
		_, after, found := bytes.Cut(line, []byte("coding"))
		if !found {
			continue
		}
		name := bytes.TrimLeft(bytes.TrimLeft(after, ":="), " \t")
		if end := bytes.IndexFunc(name, notOfName); end >= 0 {
			name = name[:end]
		}
		if !bytes.Equal(name, []byte("utf-8")) {
			return false
		}
	}
	return true
}

// notOfName ends the name of an encoding (PEP 263).
func notOfName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && r != '-' && r != '_' && r != '.'
}
