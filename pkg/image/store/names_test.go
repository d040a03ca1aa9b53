package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/pkg/image"
)

// Names that mean nothing are removed, by prune or by name; one that cannot be read is
// not taken for one of them, and what it may mean stays.
func TestNamesThatMeanNothing(t *testing.T) {
	s := newStore(t)
	if _, err := bring(s, root(t, map[string]string{"a": "1"}), "x"); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(s.Path, image.NamesDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("empty", "")
	put("gone", image.Digest([]byte("no image"))+"\n")
	put("long", strings.Repeat("x", 1000))
	put(".sandglass-0123456789abcdef", "")
	if _, err := s.Find("gone"); !errors.Is(err, image.ErrNone) {
		t.Errorf("a name whose image is gone: %v", err)
	}
	if _, err := Remove(s, "empty", false); err != nil {
		t.Errorf("an empty name cannot be removed: %v", err)
	}
	before := strings.Replace(have(t, s), " names/empty", "", 1)
	unreadable := filepath.Join(s.Path, image.NamesDir, "unreadable")
	if err := os.Mkdir(unreadable, 0o700); err != nil {
		t.Fatal(err)
	}
	if p, err := Prune(s); err == nil || len(p.Images) != 0 {
		t.Errorf("pruned beside a name that cannot be read: %+v, %v", p, err)
	}
	if err := os.Remove(unreadable); err != nil {
		t.Fatal(err)
	}
	if got := have(t, s); got != before {
		t.Errorf("%s, want %s", got, before)
	}
	p, err := Prune(s)
	if got := have(t, s); err != nil || len(p.Images) != 0 || !strings.HasSuffix(got, " names/x") || strings.Count(got, " ") != 1 {
		t.Errorf("left %q, %+v, %v", got, p, err)
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "python:3.12": true, "my_image-1.0": true, "A.b:C": true, "": false, "host": false, "host:1": false, "sha256": false, "a/b": false,
		"../x": false, ".a": false, "-a": false, "a:": false, ":a": false, "a:b:c": false, "a b": false, "a\n": false, strings.Repeat("a", 129): false,
	} {
		if err := image.CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
