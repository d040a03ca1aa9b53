package testkit

import (
	"io/fs"
	"os"
	"testing"
)

// Hold starts a run with -i and a stdin that ends when release is called, or
// when the test ends: the program waits for it.
func Hold(t testing.TB, o Opts, args ...string) (p *Process, release func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { w.Close() })
	o.Stdin = r
	return Start(t, o, append([]string{"-i"}, args...)...), func() { w.Close() }
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
