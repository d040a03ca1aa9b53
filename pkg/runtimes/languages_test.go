package runtimes

import (
	"slices"
	"strings"
	"testing"
)

func TestLang(t *testing.T) {
	for name, want := range map[string]string{
		"python": "python", "py": "python", "Python": "python", "python3": "python", "python3.12": "python", "pypy3.10": "python",
		"js": "node", "node": "node", "nodejs": "node", "JavaScript": "node", "ts": "typescript", "shell": "sh", "sh": "sh", "bash": "bash",
		"rb": "ruby", "ruby3.1": "ruby", "pl": "perl", "R": "r", "Rscript": "r", "tclsh8.6": "tcl", "lua5.4": "lua", "golang": "go", "go1.22": "go",
		"": "", "pythonx": "", "cobol": "", "python-config": "", "../python": "", "3": "",
	} {
		if got, ok := Lang(name); got != want || ok != (want != "") {
			t.Errorf("Lang(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}

// TestTable: no name means two languages.
func TestTable(t *testing.T) {
	seen := map[string]string{}
	for _, l := range Languages {
		names := append(append([]string{l.Name}, l.Aliases...), l.Extensions...)
		for _, n := range names {
			if other := seen[n]; other != "" {
				t.Errorf("%q is %s and %s", n, other, l.Name)
			}
			if n != strings.ToLower(n) {
				t.Errorf("%q is not lower case", n)
			}
			seen[n] = l.Name
		}
		if len(l.Commands) == 0 {
			t.Errorf("%s has no command", l.Name)
		}
		if lang, ok := ByExtension(l.File); ok && lang != l.Name && l.Name != "deno" && l.Name != "bun" && l.Name != "bash" {
			t.Errorf("%s is run as %s", l.File, lang)
		}
	}
}

func TestByExtension(t *testing.T) {
	for path, want := range map[string]string{
		"main.py": "python", "/a/b.JS": "node", "x.mjs": "node", "x.ts": "typescript", "a.sh": "sh", "a.rb": "ruby", "a.R": "r", "a.r": "r",
		"a.tcl": "tcl", "A.java": "java", "a.php": "php", "a.lua": "lua", "a.pl": "perl",
		"": "", "py": "", ".py": "python", "a.": "", "a.py/b": "", "a.py ": "", "a.go": "", "a.txt": "",
	} {
		if got, ok := ByExtension(path); got != want || ok != (want != "") {
			t.Errorf("ByExtension(%q) = %q, %v, want %q", path, got, ok, want)
		}
	}
}

func TestCodeFile(t *testing.T) {
	for lang, want := range map[string]string{
		"python": "main.py", "py": "main.py", "node": "main.js", "sh": "main.sh", "r": "main.R", "java": "Main.java", "go": "", "cobol": "", "": "",
		"Python": "main.py", "python3.11": "main.py", "JS": "main.js", "TypeScript": "main.ts", "node22": "main.js", "zsh": "",
	} {
		if got := CodeFile(lang); got != want {
			t.Errorf("CodeFile(%q) = %q, want %q", lang, got, want)
		}
	}
}

func TestCodeArgs(t *testing.T) {
	for _, tt := range []struct {
		lang, exe, file string
		args            []string
		want            string
	}{
		{"python", "/p/python3", "/work/main.py", []string{"-c", "x y"}, "/p/python3|/work/main.py|-c|x y"},
		{"node", "/usr/bin/node", "main.js", nil, "/usr/bin/node|main.js"},
		{"java", "/j/java", "Main.java", []string{"a"}, "/j/java|Main.java|a"},
		{"r", "/r/Rscript", "main.R", []string{"a"}, "/r/Rscript|main.R|a"},
		{"r", "/r/R", "main.R", []string{"a"}, "/r/R|--no-echo|--no-restore|--file=main.R|--args|a"},
		{"RScript", "/r/R", "main.R", nil, "/r/R|--no-echo|--no-restore|--file=main.R"},
		{"r", "/r/R", "main.R", nil, "/r/R|--no-echo|--no-restore|--file=main.R"},
		{"typescript", "/d/deno", "main.ts", []string{"a"}, "/d/deno|run|--allow-all|main.ts|a"},
		{"bun", "/d/bun", "main.ts", nil, "/d/bun|run|main.ts"},
		{"python", "/p/python3", "-c", []string{"a"}, "/p/python3|./-c|a"},
	} {
		if got := strings.Join(CodeArgs(tt.lang, tt.exe, tt.file, tt.args), "|"); got != tt.want {
			t.Errorf("CodeArgs(%q, %q, %q, %q) = %s, want %s", tt.lang, tt.exe, tt.file, tt.args, got, tt.want)
		}
	}
}

func TestMentioned(t *testing.T) {
	for _, tt := range []struct {
		argv string // words separated by |
		want string
	}{
		{"ruby|x.rb", "ruby"},
		{"timeout|10|/usr/bin/perl|x.pl", "perl"},
		{"python3|x.py", ""},
		{"python3.12|x.py", "python3.12"},
		{"sh|-c|ruby a.rb && node b.js; /opt/lua/bin/lua5.4 c.lua", "sh ruby lua5.4"},
		{"bash|-lc|perl -e 1|tclsh", "bash perl tclsh"},
		{"bash|-c|$(ruby)`perl`|", "bash ruby perl"},
		{"env|--x|-c", ""},
		{"ruby|ruby|-c|ruby", "ruby"},
		{"go|run|x.go", "go"},
		{"cat|ruby.txt|rubyx", ""},
		{"", ""},
		{"sh|-c|ruby1 ruby2 ruby3 ruby4 ruby5 ruby6 ruby7 ruby8 ruby9", "sh ruby1 ruby2 ruby3 ruby4 ruby5 ruby6 ruby7"},
		// A model's string never yields a path.
		{"sh|-c|/home/u/project/.venv/bin/ruby x", "sh ruby"},
	} {
		if got := strings.Join(Mentioned(strings.Split(tt.argv, "|")), " "); got != tt.want {
			t.Errorf("Mentioned(%q) = %q, want %q", tt.argv, got, tt.want)
		}
	}
	if got := Mentioned([]string{"sh", "-c", strings.Repeat(" ", mentionBytes) + "ruby"}); !slices.Equal(got, []string{"sh"}) {
		t.Errorf("beyond the bound: %q", got)
	}
}

func TestFromShebang(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"#!/bin/sh", "/bin/sh"},
		{"#! /bin/sh -e\nrest", "/bin/sh|-e"},
		{"#!/bin/sh -e -u\n", "/bin/sh|-e -u"},
		{"#!\t/usr/bin/perl\t-w \n", "/usr/bin/perl|-w"},
		{"#!/usr/bin/env python3\n", "python3"},
		{"#!/bin/env   ruby3.1  \r\n", "ruby3.1"},
		{"#!/usr/bin/env -S python3 -u\n", "python3|-u"},
		{"#!/usr/bin/env -Sdeno run --allow-read\n", "deno|run|--allow-read"},
		{"#!/opt/py/bin/python3\n", "/opt/py/bin/python3"},
		{"#!/usr/bin/env python3 -u\n", ""},
		{"#!/usr/bin/env\n", ""},
		{"#!/usr/bin/env -i python3\n", ""},
		{"#!/usr/bin/env -S\n", ""},
		{"#!/usr/bin/env -S A=1 python3\n", ""},
		{"#!/usr/bin/env -S python3 '-u'\n", ""},
		{"#!/usr/bin/env -S ${X}\n", ""},
		{"#!/usr/bin/env ./python3\n", ""},
		{"#!/usr/bin/env /usr/bin/python3\n", ""},
		{"#!/usr/bin/env ..\n", ""},
		{"#!python3\n", ""},
		{"#!./sh\n", ""},
		{"#!/usr/../tmp/sh\n", ""},
		{"#!/\n", ""},
		{"#!\n", ""},
		{"#!", ""},
		{"", ""},
		{"#", ""},
		{" #!/bin/sh", ""},
		{"#!/bin/sh\x00x\n", ""},
		{"#!/bin/\x1bsh\n", ""},
		{"\xef\xbb\xbf#!/bin/sh\n", ""},
		{"#!/" + strings.Repeat("a", 253), "/" + strings.Repeat("a", 253)},
		{"#!/" + strings.Repeat("a", 254), ""},
		{"#!/" + strings.Repeat("a", 254) + "\n", ""},
	} {
		s, ok := FromShebang([]byte(tt.line))
		got := strings.Join(append([]string{s.Interpreter}, s.Args...), "|")
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("FromShebang(%q) = %q, %v, want %q", tt.line, got, ok, tt.want)
		}
	}
}
