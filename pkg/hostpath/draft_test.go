package hostpath

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDraft: a draft takes a free name, and a taken one only by replace, without
// following what stands there; by each way that file systems have.
func TestDraft(t *testing.T) {
	ways := map[string]func(int, uint32) (*Draft, error){"nameless": NewDraft, "named": NamedDraft}
	for name, make := range ways {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			must(t, os.WriteFile(dir+"/victim", []byte("old"), 0o600))
			must(t, os.Symlink("victim", dir+"/taken"))
			fd, err := OpenDir(dir)
			must(t, err)
			defer unix.Close(fd)
			draft := func() *Draft {
				d, err := make(fd, 0o640)
				must(t, err)
				_, err = d.Write([]byte("new"))
				must(t, err)
				return d
			}
			d := draft()
			if err := d.Place("taken", false); err != unix.EEXIST {
				t.Errorf("a taken name: %v", err)
			}
			must(t, d.Close(false))
			for _, c := range []struct {
				name    string
				replace bool
			}{{"free", false}, {"free2", true}, {"taken", true}} {
				d := draft()
				must(t, d.Place(c.name, c.replace))
				must(t, d.Close(true))
				st, err := os.Lstat(dir + "/" + c.name)
				must(t, err)
				if got, _ := os.ReadFile(dir + "/" + c.name); string(got) != "new" || st.Mode() != 0o640 {
					t.Errorf("%s: %q, %v", c.name, got, st.Mode())
				}
			}
			must(t, draft().Close(false))
			if got, _ := os.ReadFile(dir + "/victim"); string(got) != "old" {
				t.Errorf("a link was followed: %q", got)
			}
			left, err := filepath.Glob(dir + "/.*")
			if len(left) != 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestDraftRelink is the way on file systems without RENAME_NOREPLACE.
func TestDraftRelink(t *testing.T) {
	dir := tempDir(t)
	fd, err := OpenDir(dir)
	must(t, err)
	defer unix.Close(fd)
	must(t, os.WriteFile(dir+"/taken", []byte("old"), 0o600))
	d, err := NamedDraft(fd, 0o600)
	must(t, err)
	if err := d.relink("taken"); err != unix.EEXIST {
		t.Errorf("a taken name: %v", err)
	}
	must(t, d.relink("free"))
	must(t, d.Close(true))
	names, err := filepath.Glob(dir + "/*")
	if err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	left, err := filepath.Glob(dir + "/.*")
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
