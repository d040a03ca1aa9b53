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
// would from a file. For Python that is what no file has to be gone back in for, and
// what it does not take for something else when it is in a file.
func Streams(lang string, text []byte) bool {
	return lang != "python" || !recoded(text) && !compiled(text) && !bytes.Contains(text, zipEnd)
}

// zipEnd is what an archive has near its end, whatever stands before it. A file with
// one is run as an archive: its __main__.py instead of its own text.
var zipEnd = []byte("PK\x05\x06")

// compiled says whether a text may begin as the code that Python writes: with a number
// of the version in two bytes, of which the second is this since 3.0. Some are text
// ("a\r" is 3.9's), and in a file Python then refuses the rest.
func compiled(text []byte) bool { return len(text) > 1 && text[1] >= 0x0c && text[1] <= 0x0f }

// recoded says whether one of the first two lines may name another encoding than
// UTF-8, for which Python begins again from the start.
func recoded(text []byte) bool {
	lines := bytes.SplitAfterN(text, []byte("\n"), 3)
	head := bytes.Join(lines[:min(len(lines), 2)], nil)
	for {
		_, after, found := bytes.Cut(head, []byte("coding"))
		if !found {
			return false
		}
		name := bytes.TrimLeft(bytes.TrimLeft(after, ":="), " \t")
		if end := bytes.IndexFunc(name, notOfName); end >= 0 {
			name = name[:end]
		}
		if !bytes.Equal(name, []byte("utf-8")) {
			return true
		}
		head = after
	}
}

// notOfName ends the name of an encoding (PEP 263).
func notOfName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && r != '-' && r != '_' && r != '.'
}
