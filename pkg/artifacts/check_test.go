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

func TestOpenDest(t *testing.T) {
	dir, err := filepath.EvalSymlinks(newDir(t))
	must(t, err)
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
	const link = `artifact destination: "DIR/%s" is a symlink, not a directory`
	for dest, want := range map[string][2]string{
		"d": {}, "new": {}, "d/new": {},
		"link":       {strings.ReplaceAll(link, "%s", "link")},
		"loop":       {strings.ReplaceAll(link, "%s", "loop")},
		"dangling":   {strings.ReplaceAll(link, "%s", "dangling")},
		"link/new":   {`artifact destination "DIR/link/new": parent directory: not a directory`},
		"dangling/x": {`artifact destination "DIR/dangling/x": parent directory: not a directory`},
		"file":       {`artifact destination: "DIR/file" is a file, not a directory`},
		"link/d/new": {`artifact destination "DIR/link/d/new": parent directory: too many levels of symbolic links`},
		"file/x":     {`artifact destination "DIR/file/x": parent directory: not a directory`},
		"a\x00b":     {`artifact destination "DIR/a\x00b": invalid argument`},
		"it's/x":     {`artifact destination "DIR/it's/x": its parent directory "DIR/it's" does not exist`, `mkdir -p -- 'DIR/it'\''s'`},
		"ro":         denied(`artifact destination: directory "DIR/ro" is not writable: permission denied`, `ls -ld -- DIR/ro`),
		"ro/new":     denied(`artifact destination: directory "DIR/ro" is not writable: permission denied`, `ls -ld -- DIR/ro`),
	} {
		d, err := OpenDest(dir + "/" + dest)
		wantRefusal(t, dest, err, strings.ReplaceAll(want[0], "DIR", dir), strings.ReplaceAll(want[1], "DIR", dir))
		if err == nil {
			d.Close()
		}
	}
	if got := snapshot(t, dir); got != before {
		t.Errorf("opening changed something:\n%s", got)
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
