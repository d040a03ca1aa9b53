package store

import (
	"os"
	"strings"
	"testing"

	"sandglass/pkg/hostpath"

	"golang.org/x/sys/unix"
)

// A directory that somebody else removed while it is looked at has nothing in it: who
// takes work away goes on with the rest of it.
func TestListOfRemoved(t *testing.T) {
	d := t.TempDir() + "/d"
	if err := os.Mkdir(d, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := hostpath.OpenDir(d)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := os.Remove(d); err != nil {
		t.Fatal(err)
	}
	if names, err := list(fd); err != nil || len(names) > 0 {
		t.Errorf("%q, %v", names, err)
	}
}

// Two who remove the same work, each of them with a part of the other's directories
// open, both come to its end, and it is gone.
func TestRemovedByTwo(t *testing.T) {
	d := t.TempDir()
	fd, err := hostpath.OpenDir(d)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for range 300 {
		if err := os.MkdirAll(d+"/work"+strings.Repeat("/d", 8), 0o700); err != nil {
			t.Fatal(err)
		}
		ends := make(chan error, 2)
		for range 2 {
			go func() { ends <- removeAll(fd, "work") }()
		}
		for range 2 {
			if err := <-ends; err != nil && err != unix.ENOTEMPTY {
				t.Fatal(err)
			}
		}
		if err := removeAll(fd, "work"); err != nil {
			t.Fatal(err)
		}
	}
}
