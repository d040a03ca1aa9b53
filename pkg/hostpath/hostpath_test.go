package hostpath

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tempDir is a directory whose path has no links.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestWalk(t *testing.T) {
	dir := tempDir(t)
	must(t, os.MkdirAll(dir+"/ours/real/deep", 0o755))
	must(t, os.MkdirAll(dir+"/theirs/real", 0o755))
	must(t, os.Mkdir(dir+"/shared", 0o755))
	must(t, os.Chmod(dir+"/shared", 0o777))
	for name, text := range map[string]string{
		"ours/abs": dir + "/theirs/real", "ours/rel": "../theirs/real", "ours/gone": "nothing", "ours/loop": "loop", "ours/chain": "rel",
		"ours/into": dir + "/theirs/link/x", "theirs/link": "../ours", "shared/link": "../ours", "ours/proc": "/proc/self/cwd",
	} {
		must(t, os.Symlink(text, dir+"/"+name))
	}
	follow := func(d string) bool { return d != dir+"/theirs" }
	for _, c := range []struct{ in, want, link string }{
		{"/ours/real", "/ours/real", ""},
		{"/ours/real/new", "/ours/real/new", ""},
		{"/ours/none/new", "/ours/none/new", ""},
		{"/ours/abs", "/theirs/real", ""},
		{"/ours/abs/new", "/theirs/real/new", ""},
		{"/ours/rel/new", "/theirs/real/new", ""},
		{"/ours/chain", "/theirs/real", ""},
		{"/theirs/real/new", "/theirs/real/new", ""},
		{"/theirs/link", "", "/theirs/link"},
		{"/theirs/link/new", "", "/theirs/link"},
		{"/ours/into", "", "/theirs/link"},
		{"/shared/link/new", "", "/shared/link"}, // anybody could have made it
		{"/ours/gone", "", "/ours/gone"},
	} {
		got, err := Walk(dir+c.in, follow)
		var link *LinkError
		switch {
		case c.link != "":
			if !errors.As(err, &link) || link.Link != dir+c.link || link.Nowhere != (c.in == "/ours/gone") {
				t.Errorf("%s: %q, %v, want the link %s", c.in, got, err, c.link)
			}
		case err != nil || got != dir+c.want:
			t.Errorf("%s: %q, %v, want %s", c.in, got, err, c.want)
		}
	}
	if got, err := Walk(dir+"/ours/loop", follow); !errors.Is(err, unix.ELOOP) {
		t.Errorf("loop: %q, %v", got, err)
	}
	var link *LinkError
	if got, err := Walk(dir+"/ours/proc", follow); !errors.As(err, &link) || link.Link != "/proc/self" {
		t.Errorf("a link of /proc's was followed: %q, %v", got, err)
	}
	if got, err := Walk("/", follow); got != "/" || err != nil {
		t.Errorf("/: %q, %v", got, err)
	}
}

func TestOpenFollowsNothing(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/real/file", "text")
	must(t, os.Symlink("real", dir+"/link"))
	must(t, os.Symlink("file", dir+"/real/link"))
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	for path, want := range map[string]error{
		"/link/file": unix.ELOOP, "/real/link": ErrNotRegular, "/fifo": ErrNotRegular, "/real": ErrNotRegular, "/none": unix.ENOENT,
	} {
		if f, _, err := OpenRegular(dir + path); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v, want %v", path, f, err, want)
		}
	}
	if _, _, err := OpenRegular("/dev/null"); err != ErrNotRegular {
		t.Errorf("/dev/null: %v", err)
	}
	f, size, err := OpenRegular(dir + "/real/file")
	must(t, err)
	defer f.Close()
	if text, err := io.ReadAll(f); size != 4 || string(text) != "text" || err != nil {
		t.Errorf("%d %q %v", size, text, err)
	}
	for path, want := range map[string]error{"/link": unix.ENOTDIR, "/link/": unix.ELOOP, "/link/.": unix.ELOOP, "/fifo": unix.ENOTDIR} {
		if fd, err := OpenDir(dir + path); err != want {
			t.Errorf("%s: %d, %v, want %v", path, fd, err, want)
		}
	}
}

func TestReach(t *testing.T) {
	dir := tempDir(t)
	for _, d := range []string{"/rw/sub", "/rwx", "/out/rw2", "/else"} {
		must(t, os.MkdirAll(dir+d, 0o755))
	}
	write(t, dir+"/else/file", "")
	must(t, os.Link(dir+"/else/file", dir+"/else/second"))
	r := &Reach{}
	for _, p := range []string{"/rw", "/out/rw2", "/else/file"} {
		var st unix.Stat_t
		must(t, unix.Stat(dir+p, &st))
		r.Add(dir+p, uint64(st.Dev), st.Ino, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	}
	holds := func(where, name string) string {
		t.Helper()
		fd, err := OpenDir(dir + where)
		must(t, err)
		defer unix.Close(fd)
		got, err := r.Holds(fd, name, filepath.Join(dir+where, name))
		must(t, err)
		return strings.TrimPrefix(got, dir)
	}
	for _, c := range []struct{ dir, name, want string }{
		{"/rw", ".", "/rw"}, {"/rw", "new", "/rw"}, {"/rw/sub", ".", "/rw"}, {"/rw/sub", "new", "/rw"}, {"", "rw", "/rw"},
		{"/rwx", "new", ""}, {"", "new", ""}, {"/out", "new", ""}, {"/else", "file", "/else/file"}, {"/else", "second", "/else/file"}, {"/else", "other", ""},
	} {
		if got := holds(c.dir, c.name); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.name, c.dir, got, c.want)
		}
	}
	for where, want := range map[string]string{"/out": "/out/rw2", "": "/rw", "/else": "", "/rwx": "", "/out/rw2": "/out/rw2"} {
		fd, err := OpenDir(dir + where)
		must(t, err)
		got, err := r.Below(fd, dir+where)
		unix.Close(fd)
		if must(t, err); strings.TrimPrefix(got, dir) != want {
			t.Errorf("below %s: %q, want %q", where, got, want)
		}
	}
}

// A directory that was renamed into the reach since its path was resolved is
// known by what it is.
func TestReachKnowsTheDirectoryItself(t *testing.T) {
	dir := tempDir(t)
	must(t, os.MkdirAll(dir+"/rw", 0o755))
	must(t, os.MkdirAll(dir+"/x/out", 0o755))
	var st unix.Stat_t
	must(t, unix.Stat(dir+"/rw", &st))
	r := &Reach{}
	r.Add(dir+"/rw", uint64(st.Dev), st.Ino, true)
	fd, err := OpenDir(dir + "/x/out")
	must(t, err)
	defer unix.Close(fd)
	must(t, os.Rename(dir+"/x", dir+"/rw/x"))
	if got, err := r.Holds(fd, ".", dir+"/x/out"); got != dir+"/rw" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A bind mount gives one directory two paths, of which neither lies in the other.
func TestReachKnowsBindMounts(t *testing.T) {
	const text = `21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 0:20 / /tmp rw - tmpfs tmpfs rw
23 21 8:1 /srv/data /mnt/data rw - ext4 /dev/sda1 rw
24 21 8:2 / /srv/data/disk rw - ext4 /dev/sdb1 rw
25 21 8:2 /deep /mnt/a\040b rw - ext4 /dev/sdb1 rw
`
	mounts := parseMounts(text)
	for _, c := range []struct {
		source, path string
		want         bool
	}{
		{"/srv/data", "/mnt/data/out", true},
		{"/srv", "/mnt/data/out", true},
		{"/mnt/data", "/srv/data/out", true},
		{"/srv/data/x", "/mnt/data/out", false},
		{"/srv/data/out", "/mnt/data/out", true},
		{"/srv/data", "/mnt/a b/out", true}, // by the mount below the source
		{"/srv/data/disk/deep", "/mnt/a b", true},
		{"/srv/data/disk/other", "/mnt/a b", false},
		{"/tmp/data", "/srv/data/out", false},
		{"/tmp", "/tmp/x", true},
	} {
		r := &Reach{mounts: mounts, known: true}
		at, got := place(mounts, c.path), false
		for _, p := range r.places(c.source) {
			got = got || p.dev == at.dev && within(at.path, p.path)
		}
		if got != c.want {
			t.Errorf("%s in %s: %v, want %v", c.path, c.source, got, c.want)
		}
	}
}

func TestReplace(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/old", "old")
	must(t, os.Chmod(dir+"/old", 0o600))
	must(t, os.Link(dir+"/old", dir+"/second"))
	must(t, os.Symlink("second", dir+"/link"))
	must(t, os.Mkdir(dir+"/dir", 0o755))
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	must(t, unix.Mknod(dir+"/sock", unix.S_IFSOCK|0o600, 0))
	for name, want := range map[string]error{"link": unix.ELOOP, "dir": errKind, "sock": errKind, "fifo": unix.ENXIO, "no/x": unix.ENOENT} {
		if r, err := Replace(dir + "/" + name); err != want {
			t.Errorf("%s: %v, %v, want %v", name, r, err, want)
		}
	}
	for _, name := range []string{"old", "new"} {
		r, err := Replace(dir + "/" + name)
		must(t, err)
		if got, _ := os.ReadFile(dir + "/old"); name == "old" && string(got) != "old" {
			t.Errorf("opening changed the file: %q", got)
		}
		// Whatever stands there when it is written is replaced, not followed.
		must(t, errors.Join(os.RemoveAll(dir+"/"+name), os.Symlink("second", dir+"/"+name)))
		must(t, errors.Join(r.Put(strings.NewReader("result\n")), r.Close()))
		st, err := os.Lstat(dir + "/" + name)
		must(t, err)
		if got, _ := os.ReadFile(dir + "/" + name); string(got) != "result\n" || !st.Mode().IsRegular() || name == "old" && st.Mode() != 0o600 {
			t.Errorf("%s: %q, %v", name, got, st.Mode())
		}
	}
	if got, _ := os.ReadFile(dir + "/second"); string(got) != "old" {
		t.Errorf("the second name has %q", got)
	}
	left, err := filepath.Glob(dir + "/" + tempPrefix + "*")
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is no file, and a directory where nothing can be made, is written to in
// place.
func TestReplaceInPlace(t *testing.T) {
	dir := tempDir(t)
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	in, err := os.OpenFile(dir+"/fifo", os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer in.Close()
	for _, name := range []string{dir + "/fifo", "/dev/null"} {
		r, err := Replace(name)
		must(t, err)
		must(t, errors.Join(r.Put(strings.NewReader("result\n")), r.Close()))
	}
	if text, err := io.ReadAll(in); string(text) != "result\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if os.Geteuid() == 0 {
		t.Skip("SKIP(want a user who is not root, have root, who may write in every directory)")
	}
	must(t, os.Mkdir(dir+"/ro", 0o755))
	write(t, dir+"/ro/r", "longer than the result\n")
	must(t, os.Chmod(dir+"/ro", 0o555))
	defer os.Chmod(dir+"/ro", 0o755)
	r, err := Replace(dir + "/ro/r")
	must(t, err)
	must(t, errors.Join(r.Put(strings.NewReader("result\n")), r.Close()))
	if text, _ := os.ReadFile(dir + "/ro/r"); string(text) != "result\n" {
		t.Errorf("%q", text)
	}
	if r, err := Replace(dir + "/ro/new"); err != unix.EACCES {
		t.Errorf("%v, %v", r, err)
	}
}
