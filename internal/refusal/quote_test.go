package refusal

import (
	"strings"
	"testing"
)

func TestQuoting(t *testing.T) {
	for _, c := range []struct{ in, word, shell, line string }{
		{"/a/b.py", "/a/b.py", "/a/b.py", "/a/b.py"},
		{"", `""`, "''", ""},
		{"a b", `"a b"`, "'a b'", "a b"},
		{"$(id)", "$(id)", "'$(id)'", "$(id)"},
		{"a;b`c`", "a;b`c`", "'a;b`c`'", "a;b`c`"},
		{"it's", "it's", `'it'\''s'`, "it's"},
		{`say "x"`, `"say \"x\""`, `'say "x"'`, `say "x"`},
		{"é…", "é…", "'é…'", "é…"},
		{"a\x1b[31mb", `"a\x1b[31mb"`, "PATH", `a\x1b[31mb`},
		{"a\nsandglass: forged", `"a\nsandglass: forged"`, "PATH", `a\nsandglass: forged`},
		{"\u202egpj", `"\u202egpj"`, "PATH", `\u202egpj`},
		{"\x9b31m", `"\x9b31m"`, "PATH", `\x9b31m`},
		{"\ufffd", "\ufffd", "'\ufffd'", "\ufffd"},
		{"a\u009bb", `"a\u009bb"`, "PATH", `a\u009bb`},
	} {
		if got := Word(c.in); got != c.word {
			t.Errorf("Word(%q) = %s, want %s", c.in, got, c.word)
		}
		if got := Shell(c.in); got != c.shell {
			t.Errorf("Shell(%q) = %s, want %s", c.in, got, c.shell)
		}
		if got := Line(c.in); got != c.line {
			t.Errorf("Line(%q) = %s, want %s", c.in, got, c.line)
		}
	}
}

func TestPlain(t *testing.T) {
	for s, good := range map[string]bool{
		"a": true, "Z9": true, "a.b-c_d": true, "": false, ".a": false, "-a": false, "_a": true, "a b": false, "a/b": false, "a\n": false,
		"a\x00": false, "é": false, "abcdefgh": true, "abcdefghi": false, "a:b": false,
	} {
		if got := Plain(s, ".-_", ".-", 8); got != good {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestBounded: what a message repeats has a bound, and is no half of a character.
func TestBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for got, want := range map[string]int{
		Word(long): mostWord + 5, Newf("%s", long).What: mostLine + 3, Bounded("x" + long): mostLine - 1 + 3,
		Newf("x").Hint("%s", long).Hint("y").Hints[0]: 1, Bounded(long[:mostLine]): mostLine, Word(long[:mostWord]): mostWord,
	} {
		if len(got) != want || strings.Contains(got, "\ufffd") || strings.Contains(got, `\x`) {
			t.Errorf("%d bytes, want %d: %.20q", len(got), want, got)
		}
	}
}
