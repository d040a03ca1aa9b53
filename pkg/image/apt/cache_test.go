package apt

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What is old goes, and of the rest what was used longest ago until it is not too
// much; what a build needs stays, and what a link leads to.
func TestCleaner(t *testing.T) {
	now := time.Now()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		age  time.Duration
		most int64
		keep string
		want []string
	}{
		{"nothing to do", keepFor, 1000, "", []string{"archives/a.deb", "archives/b.deb", "archives/partial/p", "lock", "mirror-1/apt.conf", "mirror-1/state/list"}},
		{"too much", keepFor, 150, "", []string{"archives/a.deb", "archives/partial/p", "lock", "mirror-1/apt.conf", "mirror-1/state/list"}},
		{"too much, and needed", keepFor, 150, "b.deb", []string{"archives/a.deb", "archives/b.deb", "archives/partial/p", "lock", "mirror-1/apt.conf", "mirror-1/state/list"}},
		{"all", 0, 0, "", []string{"lock"}},
	} {
		top := t.TempDir()
		for _, f := range []struct {
			name string
			days int
		}{
			{"lock", 90}, {"archives/a.deb", 1}, {"archives/b.deb", 2}, {"archives/old.deb", 31}, {"archives/partial/p", 1}, {"archives/partial/old", 31},
			{"mirror-1/apt.conf", 29}, {"mirror-1/state/list", 90}, {"mirror-2/apt.conf", 31}, {"mirror-2/state/list", 1},
		} {
			at := filepath.Join(top, f.name)
			used := now.Add(-time.Duration(f.days) * 24 * time.Hour)
			for _, err := range []error{os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, make([]byte, 100), 0o644), os.Chtimes(at, used, used)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Symlink(outside, top+"/mirror-2/state/link"); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(top)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		cl := cleaner{root: root, now: now, age: c.age, most: c.most, keep: map[string]bool{c.keep: true}}
		if err := cl.clean(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var left []string
		err = filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, p[len(top)+1:])
			}
			return err
		})
		if err != nil || !slices.Equal(left, c.want) {
			t.Errorf("%s: left %q, want %q, %v", c.name, left, c.want, err)
		}
		if want := 11 - len(c.want); cl.freed.Files != want { // of ten files and a link
			t.Errorf("%s: %d files removed, want %d", c.name, cl.freed.Files, want)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}
