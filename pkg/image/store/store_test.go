package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/unpack"

	"golang.org/x/sys/unix"
)

// newStore is an empty store of the test's own.
func newStore(t *testing.T) *image.Store {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// root is a directory to import, with these files.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	d := t.TempDir()
	for name, text := range files {
		path := filepath.Join(d, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := setTime(unix.AT_FDCWD, path, 1e9); err != nil {
			t.Fatal(err)
		}
	}
	if err := filepath.WalkDir(d, func(p string, e fs.DirEntry, err error) error { return setTime(unix.AT_FDCWD, p, 1e9) }); err != nil {
		t.Fatal(err)
	}
	return d
}

func bring(s *image.Store, dir, name string) (string, error) {
	w, err := Begin(s, &Stopper{})
	if err != nil {
		return "", err
	}
	u, err := unpack.Import(dir, unpack.Defaults(), w)
	id := ""
	if err == nil {
		id, err = w.Publish(u, name, false)
	}
	return id, errors.Join(err, w.Close())
}

// have lists what is in the store, but for files and their content.
func have(t *testing.T, s *image.Store) string {
	t.Helper()
	var list []string
	for _, d := range []string{image.ImagesDir, image.NamesDir, image.TempDir} {
		entries, err := os.ReadDir(filepath.Join(s.Path, d))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := e.Name()
			if d == image.ImagesDir {
				name = name[:4]
			}
			list = append(list, d+"/"+name)
		}
	}
	return strings.Join(list, " ")
}

// shared counts the contents that the store has on its shelves.
func shared(t *testing.T, s *image.Store) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.Path, image.FilesDir), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestImagesShareContents(t *testing.T) {
	s := newStore(t)
	big := strings.Repeat("0123456789abcdef", 100000) // more than is held in memory
	one, err := bring(s, root(t, map[string]string{"big": big, "a": "1"}), "one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := bring(s, root(t, map[string]string{"sub/big": big, "b": "2"}), "two:1.0")
	if err != nil {
		t.Fatal(err)
	}
	ino := func(path string) uint64 {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	at := func(id, file string) string {
		return filepath.Join(s.Path, image.ImagesDir, strings.TrimPrefix(id, image.DigestPrefix), image.RootDir, file)
	}
	if one == two || ino(at(one, "big")) != ino(at(two, "sub/big")) {
		t.Errorf("%s and %s do not share their large file", one, two)
	}
	if n := shared(t, s); n != 3 {
		t.Errorf("%d contents are shared, want 3", n)
	}
	if again, err := bring(s, root(t, map[string]string{"big": big, "a": "1"}), "again"); err != nil || again != one {
		t.Errorf("the same root is %s and then %s, %v", one, again, err)
	}
	if _, err := bring(s, root(t, map[string]string{"a": "other"}), "one"); err == nil || err.Error() != "the name one is taken, by "+one {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, ref := range []string{"one", "two:1.0"} {
		if _, err := Remove(s, ref, false); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := have(t, s), "images/"+one[7:11]+" names/again"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	if _, err := Remove(s, one[:19], false); err != nil {
		t.Fatal(err)
	}
	if got, n := have(t, s), shared(t, s); got != "" || n != 0 {
		t.Errorf("left after all was removed: %q and %d contents", got, n)
	}
	if _, err := Remove(s, "one", false); !errors.Is(err, image.ErrNone) {
		t.Errorf("removed again: %v", err)
	}
}

// An import that was killed has left nothing that anybody sees, and the next one
// takes away what it left; not what a live one works on.
func TestKilledAndLiveImports(t *testing.T) {
	s := newStore(t)
	dead, err := Begin(s, &Stopper{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpack.Import(root(t, map[string]string{"a": "1"}), unpack.Defaults(), dead); err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{dead.temp, dead.dir, dead.blobs, dead.files} {
		unix.Close(fd) // as the kernel does for who is killed
	}
	if names, _ := s.Names(); len(names) != 0 || have(t, s) != "tmp/"+dead.name {
		t.Errorf("of a killed import there is %s", have(t, s))
	}
	live, err := Begin(s, &Stopper{})
	if err != nil {
		t.Fatal(err)
	}
	if got := have(t, s); got != "tmp/"+live.name {
		t.Errorf("%s, want only the live import's tmp/%s", got, live.name)
	}
	if _, err := bring(s, root(t, map[string]string{"a": "1"}), "x"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(have(t, s), "tmp/"+live.name) {
		t.Errorf("the live import's work was swept: %s", have(t, s))
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestImportsAtOnce(t *testing.T) {
	s := newStore(t)
	d := root(t, map[string]string{"a": "1", "d/b": "2"})
	var wg sync.WaitGroup
	ids := make([]string, 6)
	for i := range ids {
		wg.Add(1)
		go func() {
			defer wg.Done()
			id, err := bring(s, d, "x"+string(rune('0'+i)))
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		}()
	}
	wg.Wait()
	if got, want := have(t, s), "images/"+ids[0][7:11]+" names/x0 names/x1 names/x2 names/x3 names/x4 names/x5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p, err := Prune(s); err != nil || len(p.Images) != 0 || p.Files != 0 {
		t.Errorf("pruned of a store in use: %+v, %v", p, err)
	}
}

// One image that a run has open stays, whatever is asked.
func TestImageInUseStays(t *testing.T) {
	s := newStore(t)
	id, err := bring(s, root(t, map[string]string{"a": "1"}), "x")
	if err != nil {
		t.Fatal(err)
	}
	img, err := s.Find("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Remove(s, "x", false); err == nil || err.Error() != "image "+id+" is in use, by a run or by who verifies or exports it" {
		t.Errorf("removed an image in use: %v", err)
	}
	if err := unname(s, "x"); err != nil {
		t.Fatal(err)
	}
	if p, err := Prune(s); err != nil || len(p.Images) != 0 {
		t.Errorf("pruned an image in use: %+v, %v", p, err)
	}
	img.Close()
	if p, err := Prune(s); err != nil || len(p.Images) != 1 || p.Images[0] != id || shared(t, s) != 0 || have(t, s) != "" {
		t.Errorf("not pruned: %+v, %v, %q", p, err, have(t, s))
	}
}

// Verify sees every change of what was imported.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(root string) error
		want string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"content": {func(r string) error {
			os.Chmod(r+"/d/a", 0o644)
			return os.WriteFile(r+"/d/a", []byte("2"), 0o644)
		}, "/d/a: its content has changed"},
		"mode":          {func(r string) error { return unix.Chmod(r+"/d/a", 0o4755) }, "/d/a: its mode is 104755 and was 100644"},
		"a file more":   {func(r string) error { return os.WriteFile(r+"/d/x\ny", nil, 0o644) }, `"/d/x\ny": it is not of this image`},
		"a file less":   {func(r string) error { return os.Remove(r + "/d/a") }, "/d/a: it is missing"},
		"a link":        {func(r string) error { os.Remove(r + "/l"); return os.Symlink("/etc", r+"/l") }, "/l: it is not the link that it was"},
		"link for file": {func(r string) error { os.Remove(r + "/d/a"); return os.Symlink("/etc/passwd", r+"/d/a") }, "/d/a: its mode is 120777 and was 100644"},
		"link for directory": {func(r string) error { os.RemoveAll(r + "/d"); return os.Symlink("/etc", r+"/d") },
			"/d: not a directory"},
		"list": {func(r string) error { return os.WriteFile(filepath.Dir(r)+"/tree", nil, 0o600) }, "the list of files is not the one of this image"},
	} {
		s := newStore(t)
		d := root(t, map[string]string{"d/a": "1"})
		if err := os.Symlink("x", d+"/l"); err != nil {
			t.Fatal(err)
		}
		if _, err := bring(s, d, "x"); err != nil {
			t.Fatal(err)
		}
		img, err := s.Find("x")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.harm(img.Root()); err != nil {
			t.Fatal(err)
		}
		got, err := Verify(s, img)
		if err != nil || strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		img.Close()
	}
}

// An image.json that is not what its digest says is no image.
func TestChangedSettings(t *testing.T) {
	s := newStore(t)
	id, err := bring(s, root(t, map[string]string{"a": "1"}), "x")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := hostpath.Beneath(s.FD, image.ImagesDir+"/"+id[7:]+"/"+image.MetaFile, unix.O_WRONLY|unix.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Write(fd, []byte(" "))
	unix.Close(fd)
	if _, err := s.Find("x"); err == nil || !strings.HasSuffix(err.Error(), "its content is not what its digest says") {
		t.Errorf("a changed image.json: %v", err)
	}
	if _, err := Remove(s, "x", false); err != nil {
		t.Errorf("a broken image cannot be removed: %v", err)
	}
}

// Another user's store, or one that others can write to, is no store.
func TestForeignStore(t *testing.T) {
	s := newStore(t)
	if err := os.Chmod(s.Path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := image.Open(); err == nil || !strings.HasSuffix(err.Error(), "others can write to it, and could put their programs in its images") {
		t.Errorf("a store that everybody writes to: %v", err)
	}
	if os.Geteuid() != 0 {
		return // only root can give a directory away
	}
	os.Chmod(s.Path, 0o700)
	os.Chown(s.Path, 1000, 1000)
	if _, err := image.Open(); err == nil || !strings.HasSuffix(err.Error(), "it belongs to another user, whose programs its images would be") {
		t.Errorf("another user's store: %v", err)
	} else if r := err.(*refusal.Error); strings.Join(r.Hints, "; ") != "ls -ld -- "+s.Path+"; export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own" {
		t.Errorf("hints %q", r.Hints)
	}
}

// never is for an export that nobody stops.
func never() bool { return false }

// An export is an image again, with the same files, owners and modes.
func TestExport(t *testing.T) {
	s := newStore(t)
	d := root(t, map[string]string{"d/a": "1", "b": "2"})
	unix.Chmod(d+"/b", 0o4711)
	os.Symlink("/x", d+"/l")
	if _, err := bring(s, d, "x"); err != nil {
		t.Fatal(err)
	}
	img, err := s.Find("x")
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	out := t.TempDir() + "/out"
	asked, whole := 0, false
	for name, stop := range map[string]func() bool{
		"at once": func() bool { return true },
		"when all is written": func() bool {
			_, err := os.Stat(out + "/oci-layout")
			asked, whole = asked+1, whole || err == nil
			return err == nil
		},
	} {
		if err := Export(s, img, out, stop); err != ErrStopped {
			t.Errorf("stopped %s: %v", name, err)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("stopped %s: something is left", name)
			os.RemoveAll(out)
		}
	}
	if !whole || asked < 5 {
		t.Errorf("asked %d times, the last one when all was written: %v", asked, whole)
	}
	if err := Export(s, img, out, never); err != nil {
		t.Fatal(err)
	}
	if err := Export(s, img, out, never); err == nil {
		t.Error("an export over something that is there")
	}
	if _, err := bring(s, out, "back"); err != nil {
		t.Fatal(err)
	}
	back, err := s.Find("back")
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if back.Tree != img.Tree {
		t.Errorf("the files of the export differ: %s, want %s", back.Tree, img.Tree)
	}
}
