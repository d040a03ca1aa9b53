package runtimes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/refusal"
)

// tree builds files below a fresh directory and returns it. A value is a
// regular file's text; "x" an empty-ish executable, "x:TEXT" an executable with
// that text, "-> TARGET" a symbolic link, "/" a directory. $T in values is the
// directory itself.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range files {
		path := filepath.Join(root, name)
		value = strings.ReplaceAll(value, "$T", root)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		target, link := strings.CutPrefix(value, "-> ")
		text, exe := strings.CutPrefix(value, "x:")
		switch {
		case link:
			must(t, os.Symlink(target, path))
		case value == "/":
			must(t, os.MkdirAll(path, 0o755))
		case exe:
			must(t, os.WriteFile(path, []byte(text), 0o755))
		case value == "x":
			must(t, os.WriteFile(path, []byte("\x7fELF"), 0o755))
		default:
			must(t, os.WriteFile(path, []byte(value), 0o644))
		}
	}
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// finder looks in dirs below root; env is K=V.
func finder(root string, dirs []string, env ...string) Finder {
	abs := make([]string, len(dirs))
	for i, d := range dirs {
		abs[i] = filepath.Join(root, d)
	}
	return Finder{
		Path: strings.Join(abs, ":"),
		Home: root + "/home/u",
		Cwd:  root + "/home/u/task",
		Getenv: func(key string) string {
			for _, kv := range env {
				if v, ok := strings.CutPrefix(kv, key+"="); ok {
					return v
				}
			}
			return ""
		},
	}
}

// show prints an Interpreter with root shortened, for exact comparison.
func show(root string, i Interpreter) string {
	var b strings.Builder
	b.WriteString(i.Exe)
	if i.Prefix != "" {
		b.WriteString(" prefix=" + i.Prefix)
	}
	if i.FileOnly {
		b.WriteString(" file")
	}
	if len(i.Extra) > 0 {
		b.WriteString(" extra=" + strings.Join(i.Extra, ","))
	}
	for _, l := range i.Links {
		b.WriteString(" link=" + l.Path + "->" + l.Target)
	}
	if len(i.BinDirs) > 0 {
		b.WriteString(" bin=" + strings.Join(i.BinDirs, ","))
	}
	return strings.ReplaceAll(b.String(), root, "$T")
}

// wantRefusal checks exit code and a part of the message.
func wantRefusal(t *testing.T, err error, exit int, part string) *refusal.Error {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("error %v, want a refusal with %q", err, part)
	}
	if r.Exit != exit || !strings.Contains(r.What, part) {
		t.Errorf("refusal %d %q, want %d with %q", r.Exit, r.What, exit, part)
	}
	if strings.ContainsAny(r.What, "\n\x1b") || strings.HasSuffix(r.What, ".") {
		t.Errorf("not one clean line: %q", r.What)
	}
	return r
}
