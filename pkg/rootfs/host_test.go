package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandglass/internal/testkit"
)

// TestStamps: a directory that has changed in the last moment is the same as no other
// look at it; then it is the same until a name in it changes.
func TestStamps(t *testing.T) {
	dir := t.TempDir()
	a, b, none := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "none")
	dirs := []string{dir, none}
	same := func() bool { return slices.Equal(stamps(dirs), stamps(dirs)) }
	for _, change := range []func() error{
		func() error { return os.WriteFile(a, nil, 0o644) },
		func() error { return os.WriteFile(b, nil, 0o644) },
		func() error { return os.Rename(b, a) },
		func() error { return os.Mkdir(none, 0o755) },
		func() error { return os.Remove(a) },
	} {
		was := stamps(dirs)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(was, stamps(dirs)) || same() {
			t.Errorf("%+v is as before", was)
		}
		testkit.Eventually(t, "the change is long ago", same)
	}
}

// TestNameDirs: each directory in which a name of /etc is looked for is watched.
func TestNameDirs(t *testing.T) {
	for _, name := range append([]string{"localtime"}, fromHost...) {
		for dir := filepath.Dir("/etc/" + name); dir != "/"; dir = filepath.Dir(dir) {
			if !slices.Contains(nameDirs, dir) {
				t.Errorf("%s of %s is not", dir, name)
			}
		}
	}
}

// TestLookIsTheSame: whatever an operation has that the host decides makes it another one.
func TestLookIsTheSame(t *testing.T) {
	in := Input{Image: "host", Proc: true}
	h, err := in.Look()
	if err != nil {
		t.Fatal(err)
	}
	if !h.Same() {
		t.Error("it is not as it is")
	}
	for i := range h.ops {
		o := &h.ops[i]
		was := *o
		if o.Ino++; h.sameFound() {
			t.Errorf("%s may be another file", o.Target)
		}
		if *o = was; o.Source != "" {
			if o.Source += "x"; h.sameFound() {
				t.Errorf("%s may be from elsewhere", o.Target)
			}
		}
		*o = was
	}
	if h.ops = h.ops[1:]; h.sameFound() {
		t.Error("there may be something new")
	}
}
