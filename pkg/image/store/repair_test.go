package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/pkg/image"
)

// harm changes or empties a file of an image, in place, as a disk does.
func harm(t *testing.T, s *image.Store, id, file, text string) {
	t.Helper()
	path := filepath.Join(s.Path, dirOf(id), file)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if file == image.MetaFile {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// whole expects that an image is as it was imported, or these problems.
func whole(t *testing.T, s *image.Store, ref, want string) {
	t.Helper()
	img, err := s.Find(ref)
	if err != nil {
		t.Errorf("%s: %v", ref, err)
		return
	}
	defer img.Close()
	if got, err := Verify(s, img); err != nil || strings.Join(got, "; ") != want {
		t.Errorf("%s: %q, %v, want %q", ref, got, err, want)
	}
}

// What a disk has changed an import of the same makes whole again, also below an image
// that shares it; nothing of it gets into an image that is made later.
func TestImportRepairs(t *testing.T) {
	large := strings.Repeat("x", 2*small)
	for name, text := range map[string]string{"a changed byte": "2", "an emptied file": "", "a large file": large[1:] + "y"} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			content := "1"
			if len(text) > small {
				content = large
			}
			one, two, three := map[string]string{"a": content}, map[string]string{"a": content, "b": "2"}, map[string]string{"a": content, "c": "3"}
			dirs := []string{root(t, one), root(t, two), root(t, three)}
			id, err := bring(s, dirs[0], "one")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bring(s, dirs[1], "two"); err != nil {
				t.Fatal(err)
			}
			harm(t, s, id, "rootfs/a", text)
			whole(t, s, "one", "/a: its content has changed")
			whole(t, s, "two", "/a: its content has changed")
			for i, name := range []string{"three", "one", "two"} {
				if _, err := bring(s, dirs[(i+2)%3], name); err != nil {
					t.Fatal(err)
				}
				whole(t, s, name, "")
			}
			if n := shared(t, s); n != 3 {
				t.Errorf("%d contents are shared, want 3", n)
			}
			if got := have(t, s); strings.Contains(got, "tmp/") {
				t.Errorf("left: %s", got)
			}
		})
	}
}

// An image that has lost its settings is told as one, and made whole by an import or
// taken away by its name.
func TestLostSettings(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, s *image.Store, id string)
		want string
	}{
		"emptied": {func(t *testing.T, s *image.Store, id string) { harm(t, s, id, image.MetaFile, "") },
			"its content is not what its digest says"},
		"missing": {func(t *testing.T, s *image.Store, id string) {
			if err := os.Remove(filepath.Join(s.Path, dirOf(id), image.MetaFile)); err != nil {
				t.Fatal(err)
			}
		}, image.MetaFile + ": no such file or directory"},
	} {
		s := newStore(t)
		d := root(t, map[string]string{"a": "1"})
		for range 2 {
			id, err := bring(s, d, "x")
			if err != nil {
				t.Fatal(err)
			}
			whole(t, s, "x", "")
			c.harm(t, s, id)
			if _, err := s.Find("x"); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if _, err := Remove(s, "x", false); err != nil || have(t, s) != "" {
			t.Errorf("%s: %v, left %s", name, err, have(t, s))
		}
	}
}

// A damaged image that a run uses is not replaced: its files would go below the run.
func TestRepairWaitsForRuns(t *testing.T) {
	s := newStore(t)
	d := root(t, map[string]string{"a": "1"})
	id, err := bring(s, d, "x")
	if err != nil {
		t.Fatal(err)
	}
	img, err := s.Find("x")
	if err != nil {
		t.Fatal(err)
	}
	harm(t, s, id, "rootfs/a", "2")
	if _, err := bring(s, d, "x"); err == nil || err.Error() != "image "+id+" is damaged, and in use, by a run or by who verifies or exports it" {
		t.Errorf("in use: %v", err)
	}
	if text, err := os.ReadFile(img.Root() + "/a"); err != nil || string(text) != "2" {
		t.Errorf("what the run has: %q, %v", text, err)
	}
	img.Close()
	if _, err := bring(s, d, "x"); err != nil {
		t.Fatal(err)
	}
	whole(t, s, "x", "")
}

// A damaged image is not exported as if it were what was imported.
func TestExportOfDamaged(t *testing.T) {
	for _, text := range []string{"2", "", "11"} {
		s := newStore(t)
		id, err := bring(s, root(t, map[string]string{"a": "1"}), "x")
		if err != nil {
			t.Fatal(err)
		}
		harm(t, s, id, "rootfs/a", text)
		img, err := s.Find("x")
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir() + "/out"
		if err := Export(s, img, to, never); err == nil || !strings.Contains(err.Error(), "/a: its content has changed") {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := os.Stat(to); !os.IsNotExist(err) {
			t.Errorf("%q: left %v", text, err)
		}
		img.Close()
	}
}

// By a digest an image with more names than one is not taken away unasked.
func TestRemoveByDigest(t *testing.T) {
	s := newStore(t)
	d := root(t, map[string]string{"a": "1"})
	id, err := bring(s, d, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bring(s, d, "y"); err != nil {
		t.Fatal(err)
	}
	if _, err := Remove(s, id, false); err == nil || err.Error() != "image "+id+" has 2 names: x, y" {
		t.Errorf("two names: %v", err)
	}
	if _, err := Remove(s, id, true); err != nil || have(t, s) != "" {
		t.Errorf("with force: %v, left %s", err, have(t, s))
	}
	if _, err := Remove(s, id, true); err != image.ErrNone {
		t.Errorf("again: %v", err)
	}
}
