package testkit

import (
	"io/fs"
	"os"
	"slices"
	"testing"
)

// Hold starts a run with -i and a stdin that ends when release is called, or
// when the test ends: the program waits for it. It has longer for that than the
// default's ten seconds, which a slow machine needs to look at it from outside.
func Hold(t testing.TB, o Opts, args ...string) (p *Process, release func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { w.Close() })
	o.Stdin = r
	flags := []string{"-i"}
	if !slices.Contains(args, "--timeout") {
		flags = append(flags, "--timeout", "100s")
	}
	return Start(t, o, append(flags, args...)...), func() { w.Close() }
}

// Source is the text of a program in a package's testdata.
func Source(t testing.TB, testdata fs.FS, name string) string {
	t.Helper()
	text, err := fs.ReadFile(testdata, "testdata/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
