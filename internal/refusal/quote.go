package refusal

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text that comes from outside (a name in an image, the text of a link, a path
// that a program could choose) is put into a line through one of these: an
// escape sequence would steer the reader's terminal, a newline would forge a
// line of ours, and a quote or a $() in a hint would run when it is pasted.

// What a message repeats of what its reader has sent: any path has room. A request of
// a session's may be 16 MiB, and a few of them must not come back whole, several times
// over, in what the session holds.
const (
	mostWord = 4 << 10
	mostLine = 16 << 10
)

// Bounded is s, or its beginning where that is longer than a line of ours may be.
func Bounded(s string) string {
	if len(s) <= mostLine {
		return s
	}
	return cut(s, mostLine) + "..."
}

// cut is the beginning of s that has at most so many bytes, and no half of a character.
func cut(s string, most int) string {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most])
}

// Word shows s in a sentence: as it is where that is plain, else quoted.
func Word(s string) string {
	if len(s) > mostWord {
		return strconv.Quote(cut(s, mostWord)) + "..."
	}
	if q := strconv.Quote(s); q != `"`+s+`"` || s == "" || strings.Contains(s, " ") {
		return q
	}
	return s
}

// Shell makes s one word of a POSIX shell, for hints that are pasted.
func Shell(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+=:,@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if strings.ContainsFunc(s, unprintable) || !utf8.ValidString(s) {
		return "PATH" // a control character in a hint would reach the terminal
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// maxLine is how long a command of the caller's may be to come again in a hint.
const maxLine = 200

// ShellLine is words of a command; the arguments are left out where they are long.
func ShellLine(first string, args ...string) string {
	line := Shell(first)
	for _, a := range args {
		line += " " + Shell(a)
	}
	if len(line) > maxLine && len(args) > 0 {
		return Shell(first) + " ARG..."
	}
	return line
}

// Line is a whole line of ours without what could steer a terminal or begin
// another line: the last stop, for texts that came together elsewhere.
func Line(s string) string {
	if !strings.ContainsFunc(s, unprintable) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unprintable(r) || r == utf8.RuneError && n == 1 {
			// A byte that is no UTF-8 is an escape sequence to some terminals.
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// Plain says that a word has only ASCII letters, digits and others in it, begins
// with none of notFirst, and has 1 to most bytes: such a word is never a path, an
// option, or a second line.
func Plain(s, others, notFirst string, most int) bool {
	if s == "" || len(s) > most || strings.IndexByte(notFirst, s[0]) >= 0 {
		return false
	}
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}
