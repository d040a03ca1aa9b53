package runtimes

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestReadVersions(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{"3.12.1\n", "3.12.1"},
		{"3.12.1 second\r\n# no\n\n  2.7.18\n", "3.12.1 2.7.18"},
		{"system", "system"},
		{"../../x\n/etc\n..\n.\n-x\na/b\n3.9", "3.9"},
		{"root:x:0:0:root:/root:/bin/sh\n", ""},
		{"\x00\x1b", ""},
		{strings.Repeat("9", 65), ""},
		{strings.Repeat("1\n", 50), strings.TrimSpace(strings.Repeat("1 ", versionWords))},
		{"", ""},
	} {
		if got := strings.Join(readVersions([]byte(tt.data)), " "); got != tt.want {
			t.Errorf("readVersions(%q) = %q, want %q", tt.data, got, tt.want)
		}
	}
}

func TestReadTools(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{"nodejs 20\npython 3.12.1 2.7 system # x\n", "3.12.1 2.7 system"},
		{"pythonx 1\n#python 2\n", ""},
		{"python path:/home/u ref:main ../x\n", ""},
		{"python", ""},
	} {
		if got := strings.Join(readTools([]byte(tt.data), "python"), " "); got != tt.want {
			t.Errorf("readTools(%q) = %q, want %q", tt.data, got, tt.want)
		}
	}
}

func TestReadTOML(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{"[tools]\npython = \"3.12\" # x\n", "3.12"},
		{"[tools]\n\"python\"='3.12'\n", "3.12"},
		{"python = \"3.12\"\n[env]\npython = \"3.12\"\n", ""},
		{"[tools]\npython = [\"3.12\", \"3.11\"]\n", ""},
		{"[tools]\npython = {version=\"3.12\"}\n", ""},
		{"[tools]\npython = \"path:/x\"\n", ""},
		{"[tools]\npython = \"\n", ""},
		{"[tools]\npython =\n", ""},
	} {
		if got := strings.Join(readTOML([]byte(tt.data), "python"), " "); got != tt.want {
			t.Errorf("readTOML(%q) = %q, want %q", tt.data, got, tt.want)
		}
	}
}

func TestInstalled(t *testing.T) {
	root := tree(t, map[string]string{
		"3.9.20": "/", "3.12.1": "/", "3.12.10": "/", "3.12.9": "/", "3.13.0rc2": "/", "3.13.0t": "/", "3.14-dev": "/", "3.120.0": "/",
		"pypy3.10-7.3.15": "/", "pypy3.10-7.3.9": "/", "v20": "/", "20.1.0": "/",
	})
	for version, want := range map[string]string{
		"3.12.1": "3.12.1", "3.12": "3.12.10", "3": "3.120.0", "3.13": "", "3.13t": "3.13.0t", "3.14": "", "3.14-dev": "3.14-dev",
		"python-3.12": "3.12.10", "v20.1.0": "20.1.0", "20": "20.1.0", "v20": "v20", "pypy3.10": "pypy3.10-7.3.15", "9": "", "3.1": "",
	} {
		got := installed(root, "python", version)
		if want != "" {
			want = root + "/" + want
		}
		if got != want {
			t.Errorf("installed(%q) = %q, want %q", version, got, want)
		}
	}
}

func FuzzReadVersions(f *testing.F) {
	f.Add([]byte("3.12.1\n../x\n# c\n"))
	f.Add([]byte("python 3.12 system\n[tools]\npython = \"3\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all := append(readVersions(data), readTools(data, "python")...)
		all = append(all, readTOML(data, "python")...)
		if len(all) > 2*versionWords+1 {
			t.Fatalf("%d versions", len(all))
		}
		for _, v := range all {
			if v == "" || strings.ContainsAny(v, "/\x00\n :") || filepath.Join("/r", v) != "/r/"+v {
				t.Fatalf("version %q leaves its directory", v)
			}
		}
	})
}

func FuzzFromShebang(f *testing.F) {
	for _, s := range []string{"#!/bin/sh -e\n", "#!/usr/bin/env -S python3 -u\n", "#!/usr/bin/env x\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := FromShebang(line)
		if !ok {
			return
		}
		if hasControl(s.Interpreter) || len(s.Interpreter) > shebangMax {
			t.Fatalf("interpreter %q", s.Interpreter)
		}
		if abs := filepath.IsAbs(s.Interpreter); abs != strings.Contains(s.Interpreter, "/") || !abs && !bareName(s.Interpreter) {
			t.Fatalf("interpreter %q is relative", s.Interpreter)
		}
		for _, a := range s.Args {
			if a == "" || strings.ContainsAny(a, "\x00\n") {
				t.Fatalf("argument %q", a)
			}
		}
	})
}
