package artifacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
)

// TestHostileTree runs case C14 as it really is: a tmpfs of a dead sandbox.
func TestHostileTree(t *testing.T) {
	write(t, filepath.Join(newDir(t), "unrelated"), secret)
	fd := deadTmpfs(t, "size=4m,mode=755;tree")
	dst := filepath.Join(newDir(t), "dst")
	list, err := Collect(context.Background(), fd, into(t, dst), Limits{}, false)
	must(t, err)
	verify(t, list, dst, Limits{})
	deep := []string{`"sub/deep" dir 0 0755`, `"sub/deep/leaf" file 21 0644`}
	n255 := strings.Repeat("n", 255)
	wantLines(t, list, append(append([]string{
		`" lead" file 13 0644`,
		`"-rf" file 11 0644`,
		"\"a;b$(c)`d`\" file 18 0644",
		`"abs.txt" symlink 11  -> "/etc/passwd" (symbolic link)`,
		`"bad\\xffname" file 16 0644`,
		`"dangling" symlink 7  -> "missing" (symbolic link)`,
		`"dirlink" symlink 4  -> "/tmp" (symbolic link)`,
		`"empty" dir 0 0755`,
		`"endless" symlink 9  -> "/dev/zero" (symbolic link)`,
		`"env.txt" symlink 18  -> "/proc/self/environ" (symbolic link)`,
		`"hard.txt" file 17 0644`,
		`"loop" symlink 1  -> "." (symbolic link)`,
		`"new\nline" file 16 0644`,
		fmt.Sprintf(`"%s" file 263 0644`, n255),
		`"pipe" fifo 0  (fifo)`,
		`"plain.txt" file 17 0644`,
		`"rel.txt" symlink 104  -> "` + strings.Repeat("../", 30) + `tmp/c14-secret" (symbolic link)`,
		`"root" symlink 1  -> "/" (symbolic link)`,
		`"secret.txt" symlink 15  -> "/tmp/c14-secret" (symbolic link)`,
		`"self" symlink 4  -> "self" (symbolic link)`,
		`"setuid.bin" file 4 0755`,
		`"sock" socket 0  (socket)`,
		`"sub" dir 0 0755`,
	}, deep...), `"…" file 11 0644`)...)
}

func TestDevices(t *testing.T) {
	src, dst := trees(t)
	if err := unix.Mknod(filepath.Join(src, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Skipf("SKIP(want root for mknod, have uid %d: %v)", os.Geteuid(), err)
	}
	must(t, unix.Mknod(filepath.Join(src, "zz-block"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 99))))
	list := gather(t, src, dst, Limits{})
	verify(t, list, dst, Limits{})
	wantLines(t, list, `"null" device 0  (device)`, `"zz-block" device 0  (device)`)
}

// TestMount shows that a mount in the tree is not entered.
func TestMount(t *testing.T) {
	c := &collector{ctx: context.Background(), limits: Defaults()}
	c.entry(openDir(t, "/"), openDir(t, newDir(t)), "proc", "proc", 1)
	wantLines(t, c.list, `"proc" unknown 0  (on another mount, or moved away while it was collected)`)
}

// TestBrokenNames: a file system may list what is no name.
func TestBrokenNames(t *testing.T) {
	src, _ := trees(t)
	for _, name := range []string{"", ".", "..", "a/b", "/etc/passwd"} {
		if pin, _, err := (&collector{}).pinEntry(openDir(t, src), name); pin != -1 || err != unix.EINVAL {
			t.Errorf("%q: %d, %v", name, pin, err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ raw, path, b64 string }{
		{"plain", "plain", ""},
		{"d/…", "d/…", ""},
		{"new\nline", "new\nline", ""},
		{"bad\xffname", `bad\xffname`, "YmFk/25hbWU="},
		{`bad\xffname`, `bad\xffname`, ""},
		{"\xed\xa0\x80", `\xed\xa0\x80`, "7aCA"}, // a surrogate half is no UTF-8
		{"é\x80", `é\x80`, "w6mA"},
		{"\ufffd", "\ufffd", ""},
	} {
		if a := newArtifact(c.raw, typeFile); a.Path != c.path || a.PathBase64 != c.b64 {
			t.Errorf("%q: %q %q, want %q %q", c.raw, a.Path, a.PathBase64, c.path, c.b64)
		}
	}
}

func TestLongLink(t *testing.T) {
	src, dst := trees(t)
	long := strings.Repeat("\xfe", 4095)
	must(t, os.Symlink(long, filepath.Join(src, "l")))
	list := gather(t, src, dst, Limits{})
	verify(t, list, dst, Limits{})
	if got := list[0].Target; got != strings.Repeat(`\xfe`, 4095) || list[0].Size != 4095 {
		t.Errorf("%d bytes of target, size %d", len(got), list[0].Size)
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode, umask uint32
		want        string
	}{
		{0o6777, 0o022, "0755"}, {0o7777, 0, "0755"}, {0o100, 0o022, "0700"}, {0o000, 0o022, "0600"},
		{0o444, 0o022, "0644"}, {0o666, 0o077, "0600"}, {0o755, 0o077, "0700"}, {0o755, 0o777, "0600"},
	} {
		src, dst := trees(t)
		file := filepath.Join(src, "f")
		write(t, file, "x")
		must(t, unix.Chmod(file, c.mode))
		must(t, os.Mkdir(dst, 0o755))
		old := syscall.Umask(int(c.umask))
		list, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, false)
		syscall.Umask(old)
		must(t, err)
		want := `"f" file 1 ` + c.want
		wantLines(t, list, want)
	}
}

// TestDirectoryModes: the owner can use the directories that were made, whatever
// the umask; one that was there stays as it is.
func TestDirectoryModes(t *testing.T) {
	for _, c := range []struct{ umask, want uint32 }{{0o022, 0o755}, {0o077, 0o700}, {0o777, 0o700}, {0o300, 0o755}} {
		src, dst := trees(t)
		must(t, os.Mkdir(filepath.Join(src, "d"), 0o755))
		write(t, filepath.Join(src, "d/f"), "x")
		old := syscall.Umask(int(c.umask))
		_, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, false)
		syscall.Umask(old)
		must(t, err)
		for _, dir := range []string{dst, dst + "/d"} {
			if st, err := os.Stat(dir); err != nil || uint32(st.Mode().Perm()) != c.want {
				t.Errorf("umask %o: %s: %v %v, want %o", c.umask, dir, st.Mode().Perm(), err, c.want)
			}
		}
	}
}

// TestLocked: what the program has made unreadable is collected all the same, to
// whomever it belongs, with the mode that the program gave it.
func TestLocked(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o100, 0o200, 0o400, 0o077, 0o700} {
		src, dst := trees(t)
		fd := openDir(t, src)
		must(t, os.MkdirAll(filepath.Join(src, "d/e"), 0o755))
		for _, f := range []string{"d/e/f", "d/f", "f"} {
			write(t, filepath.Join(src, f), f)
			must(t, os.Chmod(filepath.Join(src, f), mode))
		}
		for _, d := range []string{"d/e", "d", "."} {
			must(t, os.Chmod(filepath.Join(src, d), mode))
		}
		list, err := Collect(context.Background(), fd, into(t, dst), Limits{}, false)
		must(t, err)
		verify(t, list, dst, Limits{})
		got := octal(uint32(mode)&0o755&^0o022 | 0o600)
		wantLines(t, list, `"d" dir 0 0755`, `"d/e" dir 0 0755`, `"d/e/f" file 5 `+got, `"d/f" file 3 `+got, `"f" file 1 `+got)
	}
}

// TestUnreadable: what belongs to somebody else is not unlocked, and that it is
// missing is an error.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIP(want a user who is not root, have root, who may read everything)")
	}
	before, err := os.Stat("/etc/shadow")
	if err != nil {
		t.Skipf("SKIP(want /etc/shadow, have %v)", err)
	}
	proc, err := openProc()
	must(t, err)
	defer unix.Close(proc)
	c := &collector{ctx: context.Background(), limits: Defaults(), proc: proc, left: 1 << 20, draft: newDraft}
	c.entry(openDir(t, "/etc"), openDir(t, newDir(t)), "shadow", "shadow", 1)
	wantLines(t, c.list, fmt.Sprintf(`"shadow" file %d  (permission denied)`, before.Size()))
	if err := errors.Join(c.errs()...); err == nil || err.Error() != `cannot collect artifact "shadow": permission denied` {
		t.Errorf("error %v", err)
	}
	if after, err := os.Stat("/etc/shadow"); err != nil || after.Mode() != before.Mode() {
		t.Errorf("/etc/shadow: %v, %v", after, err)
	}
}

// TestDepth: a hundred levels cost sixteen.
func TestDepth(t *testing.T) {
	src, dst := trees(t)
	must(t, os.MkdirAll(filepath.Join(src, strings.Repeat("d/", 100)), 0o755))
	write(t, filepath.Join(src, strings.Repeat("d/", 16), "kept"), "x")
	list := gatherPast(t, src, dst, Limits{}, "1 entry was not collected: deeper than 16 levels")
	verify(t, list, dst, Limits{})
	if len(list) != 18 {
		t.Fatalf("%d entries:\n%s", len(list), lines(list))
	}
	wantLines(t, list[16:], `"`+strings.Repeat("d/", 16)+`d" dir 0  (deeper than 16 levels)`, `"`+strings.Repeat("d/", 16)+`kept" file 1 0644`)
}

// TestManyFiles: a directory of a hundred thousand names is listed to the limit.
func TestManyFiles(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 5_000
	}
	src, dst := trees(t)
	fd := openDir(t, src)
	for i := range n {
		must(t, unix.Mknodat(fd, fmt.Sprintf("f%06d", i), unix.S_IFREG|0o644, 0))
	}
	dir, names, err := (&collector{limits: Limits{Files: 1000}}).openList(fd)
	must(t, err)
	rest, err := unix.Getdents(dir, make([]byte, 1<<10))
	unix.Close(dir)
	if len(names) != 1001 || err != nil || rest <= 0 {
		t.Errorf("%d names were read and then %d bytes, %v: not to the limit", len(names), rest, err)
	}
	list := gatherPast(t, src, dst, Limits{}, fmt.Sprintf("%d entries were not collected: more than 1000 entries", n-1000))
	verify(t, list, dst, Limits{})
	if len(list) != 1001 {
		t.Fatalf("%d entries", len(list))
	}
	wantLines(t, list[1000:], `"." dir 0  (… and more: the limit is 1000 entries)`)
}

func TestFilesLimit(t *testing.T) {
	for _, c := range []struct {
		limit int
		past  string
		want  []string
	}{
		{4, "", []string{`"a" file 1 0644`, `"b" dir 0 0755`, `"b/c" file 1 0644`, `"d" symlink 1  -> "a" (symbolic link)`}},
		{3, "1 entry was not collected: more than 3 entries", []string{`"a" file 1 0644`, `"b" dir 0 0755`, `"b/c" file 1 0644`, `"." dir 0  (… and more: the limit is 3 entries)`}},
		{2, "1 entry was not collected: more than 2 entries", []string{`"a" file 1 0644`, `"b" dir 0 0755`, `"." dir 0  (… and more: the limit is 2 entries)`}},
		{1, "1 entry was not collected: more than 1 entry", []string{`"a" file 1 0644`, `"." dir 0  (… and more: the limit is 1 entries)`}},
	} {
		src, dst := trees(t)
		write(t, filepath.Join(src, "a"), "1")
		must(t, os.Mkdir(filepath.Join(src, "b"), 0o755))
		write(t, filepath.Join(src, "b/c"), "2")
		must(t, os.Symlink("a", filepath.Join(src, "d")))
		// The order of a listing that a limit cuts is the kernel's: make it whole.
		l := Limits{Files: c.limit}
		if c.limit < 3 {
			must(t, os.Remove(filepath.Join(src, "d")))
		}
		if c.limit == 1 {
			must(t, os.RemoveAll(filepath.Join(src, "b")))
			write(t, filepath.Join(src, "b"), "3")
		}
		var list []result.Artifact
		if c.past == "" {
			list = gather(t, src, dst, l)
		} else {
			list = gatherPast(t, src, dst, l, c.past)
		}
		verify(t, list, dst, l)
		wantLines(t, list, c.want...)
	}
}

// TestTextLimit: a manifest of long link texts ends before it floods.
func TestTextLimit(t *testing.T) {
	src, dst := trees(t)
	for i := range 50 {
		must(t, os.Symlink(strings.Repeat("\xff", 4095), filepath.Join(src, fmt.Sprintf("l%02d", i))))
	}
	list := gatherPast(t, src, dst, Limits{Files: 60}, "46 entries were not collected: the names and link texts are too long together")
	if got := len(list); got != 5 {
		t.Errorf("%d entries", got)
	}
	wantLines(t, list[4:], `"." dir 0  (… and more: the names and link texts are too long together)`)
}

func TestByteLimits(t *testing.T) {
	src, dst := trees(t)
	write(t, filepath.Join(src, "a"), strings.Repeat("a", 60))
	write(t, filepath.Join(src, "b"), strings.Repeat("b", 81))
	write(t, filepath.Join(src, "c"), strings.Repeat("c", 50))
	write(t, filepath.Join(src, "d"), strings.Repeat("d", 40))
	write(t, filepath.Join(src, "e"), "")
	write(t, filepath.Join(src, "f"), "f")
	l := Limits{Bytes: 100, FileBytes: 80}
	list := gatherPast(t, src, dst, l, "3 entries were not collected: "+
		"larger than the limit of one file, 80 bytes; past the limit of all files together, 100 bytes")
	verify(t, list, dst, l)
	wantLines(t, list,
		`"a" file 60 0644`,
		`"b" file 81  (larger than the limit of one file, 80 bytes)`,
		`"c" file 50  (past the limit of all files together, 100 bytes)`,
		`"d" file 40 0644`,
		`"e" file 0 0644`,
		`"f" file 1  (past the limit of all files together, 100 bytes)`)
}

func TestSparse(t *testing.T) {
	src, dst := trees(t)
	write(t, filepath.Join(src, "huge"), "")
	must(t, os.Truncate(filepath.Join(src, "huge"), 1<<40))
	write(t, filepath.Join(src, "small"), "")
	must(t, os.Truncate(filepath.Join(src, "small"), 300_000))
	list := gatherPast(t, src, dst, Limits{}, "1 entry was not collected: larger than the limit of one file, 268435456 bytes")
	verify(t, list, dst, Limits{})
	wantLines(t, list, `"huge" file 1099511627776  (larger than the limit of one file, 268435456 bytes)`, `"small" file 300000 0644`)
}

func TestLimitsResolve(t *testing.T) {
	if l, err := (Limits{}).resolve(); err != nil || l != Defaults() {
		t.Errorf("%+v, %v", l, err)
	}
	for want, l := range map[string]Limits{
		"artifact limit: files must be between 1 and 1000000, not -1":      {Files: -1},
		"artifact limit: files must be between 1 and 1000000, not 1000001": {Files: 1000001},
		"artifact limit: depth must be between 1 and 128, not 129":         {Depth: 129},
		"artifact limit: depth must be between 1 and 128, not -5":          {Depth: -5},
		"artifact limit: bytes must be positive, not -1":                   {Bytes: -1},
		"artifact limit: bytes of one file must be positive, not -1":       {FileBytes: -1},
		"artifact limit: time must be positive, not -1ns":                  {Time: -1},
	} {
		list, err := Collect(context.Background(), -1, nil, l, false)
		var r *refusal.Error
		if !errors.As(err, &r) || err.Error() != want || list != nil {
			t.Errorf("%v, %v, want %s", list, err, want)
		}
	}
}

func TestBadSource(t *testing.T) {
	src, dst := trees(t)
	list, err := Collect(context.Background(), -1, into(t, dst), Limits{}, false)
	if want := `cannot collect artifact ".": bad file descriptor`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	wantLines(t, list, `"." dir 0  (bad file descriptor)`)
	write(t, filepath.Join(src, "f"), "x")
	fd, err := unix.Open(filepath.Join(src, "f"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	list, err = Collect(context.Background(), fd, into(t, dst), Limits{}, false)
	if !errors.Is(err, unix.ENOTDIR) {
		t.Error(err)
	}
	wantLines(t, list, `"." dir 0  (not a directory)`)
}

// TestSourceOffset: the caller's descriptor is used, not consumed.
func TestSourceOffset(t *testing.T) {
	src, dst := trees(t)
	write(t, filepath.Join(src, "f"), "x")
	fd, err := unix.Open(src, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	for _, d := range []string{dst, dst + "2"} {
		list, err := Collect(context.Background(), fd, into(t, d), Limits{}, false)
		must(t, err)
		wantLines(t, list, `"f" file 1 0644`)
	}
}
