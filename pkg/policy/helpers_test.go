package policy

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testHost has a working directory /w with a few files, and HOME=/home/ann.
func testHost() Host {
	files := fstest.MapFS{
		"w/script.py": {Data: []byte("print(1)")}, "w/tool": {}, "w/task/main.py": {}, "w/root/bin/sh": {}, "w/a b.py": {},
		"w/pipe": {Mode: fs.ModeNamedPipe}, "w/host": {}, "usr/bin/python3": {}, "srv/x.sh": {}, "srv/tool": {}, "srv/other.env": {Data: []byte("OTHER=1\n")},
		"w/env":  {Data: []byte("# comment\n\nA=1\r\nB=x=y\n  \nC=\nA=2")},
		"w/bad1": {Data: []byte("A=1\nSECRET\n")}, "w/bad2": {Data: []byte("A B=1\n")}, "w/bad3": {Data: []byte("=1")},
		"w/big": {Data: make([]byte, maxEnvFile+1)},
	}
	inside := func(name string) string {
		if !strings.HasPrefix(name, "/") {
			name = "/w/" + strings.TrimPrefix(name, "./")
		}
		return strings.Trim(strings.TrimSuffix(name, "/."), "/")
	}
	links := map[string]string{
		"/link": "/data/ann", "/w/evil.env": "/etc/shadow", "/w/other.env": "/srv/other.env", "/w/own.env": "/w/env", "/w": "/w", "/w/task": "/w/task",
	}
	vars := map[string]string{"HOME": "/home/ann", "TOKEN": "t0p", "EMPTY": ""}
	return Host{
		Stdin: strings.NewReader("print(2)\n"),
		Stat:  func(name string) (fs.FileInfo, error) { return fs.Stat(files, inside(name)) },
		Open: func(name string) (fs.File, error) {
			if info, err := fs.Stat(files, inside(name)); err == nil && !info.Mode().IsRegular() {
				return nil, hostpath.ErrNotRegular
			}
			return files.Open(inside(name))
		},
		Resolve: func(name string) (string, error) {
			if to, ok := links[name]; ok {
				return to, nil
			}
			if _, err := fs.Stat(files, inside(name)); err != nil {
				return "", &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
			}
			return name, nil
		},
		Getwd: func() (string, error) { return "/w", nil },
		LookupEnv: func(k string) (string, bool) {
			v, ok := vars[k]
			return v, ok
		},
		Image: testImage,
		Images: func() (names, ids []string) {
			return []string{"app:1.0", "bare", "host-python3", "python3", "set"}, []string{image.DigestPrefix + strings.Repeat("5e", 32)}
		},
	}
}

// testImage knows two images: one with settings, one without.
func testImage(ref string) (string, image.Config, error) {
	switch ref {
	case "set":
		return image.DigestPrefix + strings.Repeat("5e", 32), image.Config{
			Env: []string{"PATH=/opt/bin", "A=image", "B=image"}, Entrypoint: []string{"/entry", "-x"}, Cmd: []string{"cmd", "arg"}, WorkingDir: "/app", User: "0",
		}, nil
	case "bare", "python3":
		return image.DigestPrefix + strings.Repeat("ba", 32), image.Config{}, nil
	case "broken":
		return "", image.Config{}, refusal.Newf("image store /s: images/x: broken")
	}
	return "", image.Config{}, image.ErrNone
}

// words splits a command line at spaces, outside of single quotes.
func words(line string) []string {
	var list []string
	word, in, quoted := "", false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, in = !quoted, true
		case r == ' ' && !quoted:
			if in {
				list = append(list, word)
			}
			word, in = "", false
		default:
			word, in = word+string(r), true
		}
	}
	if in {
		list = append(list, word)
	}
	return list
}

func parse(t *testing.T, line string) Parsed {
	t.Helper()
	p, err := testHost().Parse("run", words(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return p
}

// shown is an error as the command line prints it.
func shown(t *testing.T, err error) string {
	t.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) {
		t.Errorf("not a refusal: %v", err)
		return ""
	}
	s := fmt.Sprintf("error %d: %s\n", e.Exit, e.What)
	for _, h := range e.Hints {
		s += "hint: " + h + "\n"
	}
	return s
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		a, b := "(end)", "(end)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Fatalf("%s line %d:\ngot  %s\nwant %s\nrun with -update when it is meant", name, i+1, a, b)
		}
	}
}

// okSpec is valid.
func okSpec() Spec {
	s := Default()
	s.Program.Command = []string{"true"}
	s.Home = "/home/ann"
	return s
}
