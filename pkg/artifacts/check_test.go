package artifacts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/refusal"
)

func TestCheck(t *testing.T) {
	dir := newDir(t)
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "ro"), 0o555))
	must(t, os.Symlink("d", filepath.Join(dir, "link")))
	must(t, os.Symlink("gone", filepath.Join(dir, "dangling")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	write(t, filepath.Join(dir, "file"), "")
	before := snapshot(t, dir)
	denied := func(what, hint string) [2]string {
		if os.Geteuid() == 0 {
			return [2]string{} // root may write there
		}
		return [2]string{what, hint}
	}
	for dest, want := range map[string][2]string{
		"d": {}, "d/": {}, "d/.": {}, "link": {}, "new": {}, "new/": {}, "link/new": {}, "d/new//": {}, "d/../new": {},
		"file":       {`artifact destination: "DIR/file" is a file, not a directory`},
		"file/x":     {`artifact destination "DIR/file/x": not a directory`},
		"loop":       {`artifact destination "DIR/loop": too many levels of symbolic links`},
		"a\x00b":     {`artifact destination "DIR/a\x00b": invalid argument`},
		"dangling":   {`artifact destination "DIR/dangling" is a symbolic link to nothing`, `rm -- 'DIR/dangling'`},
		"it's/x":     {`artifact destination "DIR/it's/x": its parent directory "DIR/it's" does not exist`, `mkdir -p -- 'DIR/it'\''s'`},
		"dangling/x": {`artifact destination "DIR/dangling/x": its parent directory "DIR/dangling" does not exist`, `mkdir -p -- 'DIR/dangling'`},
		"ro":         denied(`artifact destination: directory "DIR/ro" is not writable: permission denied`, `ls -ld -- 'DIR/ro'`),
		"ro/new":     denied(`artifact destination: directory "DIR/ro" is not writable: permission denied`, `ls -ld -- 'DIR/ro'`),
	} {
		for _, force := range []bool{false, true} {
			err := Check(dir+"/"+dest, force)
			wantRefusal(t, dest, err, strings.ReplaceAll(want[0], "DIR", dir), strings.ReplaceAll(want[1], "DIR", dir))
		}
	}
	wantRefusal(t, "", Check("", false), "artifact destination is empty", "")
	if got := snapshot(t, dir); got != before {
		t.Errorf("the check changed something:\n%s", got)
	}
}

func wantRefusal(t *testing.T, dest string, err error, what, hint string) {
	t.Helper()
	if what == "" {
		if err != nil {
			t.Errorf("%q: %v", dest, err)
		}
		return
	}
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Errorf("%q: %v, want %s", dest, err, what)
		return
	}
	var hints []string
	if hint != "" {
		hints = []string{hint}
	}
	if r.What != what || r.Exit != refusal.ExitRefused || !slices.Equal(r.Hints, hints) {
		t.Errorf("%q: %q %q, want %q %q", dest, r.What, r.Hints, what, hints)
	}
}

func TestCheckRelative(t *testing.T) {
	t.Chdir(newDir(t))
	must(t, Check("new", false))
	must(t, Check(".", false))
	must(t, Check("./new/", false))
	if _, err := os.Lstat("new"); err == nil {
		t.Error("the check made the directory")
	}
}

func TestParentOf(t *testing.T) {
	for path, want := range map[string]string{
		"a": ".", "a/": ".", "/a": "/", "/a//": "/", "a/b": "a", "a/../b": "a/..", "/x/y/": "/x", "//a": "/", "a//b": "a/",
	} {
		if got := parentOf(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
