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

	"sandglass/pkg/hostpath"
)

// occupied is a destination with something of every kind at the program's
// names: f (file), l and ld (links to a file and to a directory), p (FIFO), d (directory), dl (link to a
// directory), df (a file where the program has a directory).
func occupied(t *testing.T) (src, dst, victim string) {
	src, dst = trees(t)
	for _, name := range []string{"f", "l", "ld", "p", "d"} {
		write(t, filepath.Join(src, name), "program")
	}
	for _, name := range []string{"dd", "df", "dl"} {
		must(t, os.Mkdir(filepath.Join(src, name), 0o755))
		write(t, filepath.Join(src, name, "x"), "program")
	}
	victim = filepath.Join(filepath.Dir(dst), "victim")
	must(t, os.MkdirAll(filepath.Join(victim, "dir"), 0o755))
	write(t, filepath.Join(victim, "file"), secret)
	must(t, os.Mkdir(dst, 0o755))
	write(t, filepath.Join(dst, "f"), "caller")
	write(t, filepath.Join(dst, "df"), "caller")
	must(t, os.Symlink("../victim/file", filepath.Join(dst, "l")))
	must(t, os.Symlink("../victim/dir", filepath.Join(dst, "ld")))
	must(t, os.Symlink("../victim/dir", filepath.Join(dst, "dl")))
	must(t, unix.Mkfifo(filepath.Join(dst, "p"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dst, "d"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dst, "dd"), 0o755))
	write(t, filepath.Join(dst, "dd/own"), "caller")
	return src, dst, victim
}

// snapshot is a tree as text, links unfollowed.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		must(t, err)
		fmt.Fprintf(&b, "%s %v", strings.TrimPrefix(path, dir), e.Type())
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			must(t, err)
			b.Write(data)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

func TestOccupied(t *testing.T) {
	src, dst, victim := occupied(t)
	before, outside := snapshot(t, dst), snapshot(t, victim)
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, false)
	wantLines(t, list,
		`"d" file 7  (exists as a dir in the destination; never replaced)`,
		`"dd" dir 0  (exists (use --force))`,
		`"df" dir 0  (exists as a file in the destination; never replaced)`,
		`"dl" dir 0  (exists as a symlink in the destination; never replaced)`,
		`"f" file 7  (exists (use --force))`,
		`"l" file 7  (exists (use --force))`,
		`"ld" file 7  (exists (use --force))`,
		`"p" file 7  (exists (use --force))`)
	var e *ExistsError
	if !errors.As(err, &e) || e.Count != 8 || e.Forceable != 5 || len(e.Names) != 8 {
		t.Errorf("%+v", err)
	}
	const text = `the destination already has 8 artifacts: "d", "dd", "df", "dl", "f", "l", "ld", "p"`
	if err.Error() != text {
		t.Errorf("%v, want %s", err, text)
	}
	if got := snapshot(t, dst); got != before {
		t.Errorf("the destination changed:\n%swas:\n%s", got, before)
	}
	if got := snapshot(t, victim); got != outside {
		t.Errorf("outside changed:\n%s", got)
	}
}

func TestForce(t *testing.T) {
	src, dst, victim := occupied(t)
	outside := snapshot(t, victim)
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, true)
	wantLines(t, list,
		`"d" file 7  (exists as a dir in the destination; never replaced)`,
		`"dd" dir 0 0755`,
		`"dd/x" file 7 0644`,
		`"df" dir 0  (exists as a file in the destination; never replaced)`,
		`"dl" dir 0  (exists as a symlink in the destination; never replaced)`,
		`"f" file 7 0644`,
		`"l" file 7 0644`,
		`"ld" file 7 0644`,
		`"p" file 7 0644`)
	var e *ExistsError
	if !errors.As(err, &e) || e.Count != 3 || e.Forceable != 0 {
		t.Errorf("%+v", err)
	}
	want := " d---------\n/d d---------\n/dd d---------\n/dd/own ----------caller\n/dd/x ----------program\n" +
		"/df ----------caller\n/dl L---------\n/f ----------program\n/l ----------program\n/ld ----------program\n/p ----------program\n"
	if got := snapshot(t, dst); got != want {
		t.Errorf("destination:\n%swant:\n%s", got, want)
	}
	if got := snapshot(t, victim); got != outside {
		t.Errorf("outside changed:\n%s", got)
	}
}

func TestExistsErrorIsBounded(t *testing.T) {
	c := &collector{}
	for range 12 {
		c.noteExists("\x1b[2J"+strings.Repeat("é", 200), &existsFault{typ: typeFile, forceable: true})
	}
	one := `"\x1b[2J` + strings.Repeat("é", 48) + `…"`
	want := "the destination already has 12 artifacts: " + strings.Repeat(one+", ", 9) + one + " and 2 more"
	if got := c.exists.Error(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The destination is what was opened before the run, whatever becomes of its
// name since: a program with a hand in it would turn it into a link.
func TestDestinationIsOpenedOnce(t *testing.T) {
	for _, there := range []bool{true, false} {
		src, dst := trees(t)
		write(t, filepath.Join(src, "f"), "x")
		parent := filepath.Dir(dst)
		victim := filepath.Join(parent, "victim")
		must(t, os.Mkdir(victim, 0o755))
		if there {
			must(t, os.Mkdir(dst, 0o755))
		}
		d := into(t, dst)
		if there {
			must(t, os.Rename(dst, dst+".moved"))
		}
		must(t, os.Symlink("victim", dst))
		list, err := Collect(context.Background(), openDir(t, src), d, Limits{}, true)
		if names, _ := os.ReadDir(victim); len(names) != 0 {
			t.Errorf("%v was written to what the link leads to", names)
		}
		if there {
			must(t, err)
			wantLines(t, list, `"f" file 1 0644`)
			if data, err := os.ReadFile(dst + ".moved/f"); string(data) != "x" {
				t.Errorf("%q, %v", data, err)
			}
			continue
		}
		var w *CopyError
		if !errors.As(err, &w) || !errors.Is(err, unix.ENOTDIR) || w.Path != "." {
			t.Errorf("%v, want ENOTDIR", err)
		}
		wantLines(t, list, `"." dir 0  (destination: not a directory)`)
	}
}

// A directory that somebody made meanwhile will do: two runs may share one.
func TestDestinationMadeMeanwhile(t *testing.T) {
	src, dst := trees(t)
	write(t, filepath.Join(src, "f"), "x")
	d := into(t, dst)
	must(t, os.Mkdir(dst, 0o755))
	list, err := Collect(context.Background(), openDir(t, src), d, Limits{}, false)
	must(t, err)
	wantLines(t, list, `"f" file 1 0644`)
}

// TestFullDisk: what was collected before stays, what fits afterwards comes,
// and no half of a file is left.
func TestFullDisk(t *testing.T) {
	disk := deadTmpfs(t, "size=64k,mode=1777")
	dst := fmt.Sprintf("/proc/self/fd/%d", disk)
	src, _ := trees(t)
	write(t, filepath.Join(src, "a"), strings.Repeat("a", 8<<10))
	write(t, filepath.Join(src, "b"), strings.Repeat("b", 300<<10))
	write(t, filepath.Join(src, "c"), strings.Repeat("c", 200<<10))
	write(t, filepath.Join(src, "d"), "d")
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, false)
	wantLines(t, list,
		`"a" file 8192 0644`,
		`"b" file 307200  (destination: no space left on device)`,
		`"c" file 204800  (destination: no space left on device)`,
		`"d" file 1 0644`)
	var w *CopyError
	if !errors.As(err, &w) || !errors.Is(err, unix.ENOSPC) || w.Count != 2 || w.Path != "b" {
		t.Errorf("%+v", err)
	}
	const text = `cannot collect artifact "b": no space left on device (and 1 more)`
	if err.Error() != text {
		t.Errorf("%v, want %s", err, text)
	}
	dir, names, err := (&collector{limits: Limits{Files: 99}}).openList(disk)
	must(t, err)
	unix.Close(dir)
	if got := strings.Join(names, " "); got != "a d" {
		t.Errorf("destination has %s", got)
	}
}

func TestFullInodes(t *testing.T) {
	dst := fmt.Sprintf("/proc/self/fd/%d", deadTmpfs(t, "nr_inodes=3,mode=1777"))
	src, _ := trees(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		must(t, os.Mkdir(filepath.Join(src, name), 0o755))
	}
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, false)
	wantLines(t, list, `"a" dir 0 0755`, `"b" dir 0 0755`,
		`"c" dir 0  (destination: no space left on device)`, `"d" dir 0  (destination: no space left on device)`)
	if !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
}

func TestReadOnlyDestination(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIP(want an ordinary user, have root)")
	}
	src, dst := trees(t)
	write(t, filepath.Join(src, "f"), "x")
	must(t, os.Mkdir(dst, 0o755))
	d := into(t, dst)
	must(t, os.Chmod(dst, 0o555)) // after the look before the run
	list, err := Collect(context.Background(), openDir(t, src), d, Limits{}, false)
	wantLines(t, list, `"f" file 1  (destination: permission denied)`)
	if !errors.Is(err, unix.EACCES) {
		t.Error(err)
	}
}

// TestDescriptorsRunOut is the host's trouble, not the program's, and told.
func TestDescriptorsRunOut(t *testing.T) {
	src, dst := trees(t)
	must(t, os.MkdirAll(filepath.Join(src, strings.Repeat("d/", 100)), 0o755))
	fd := openDir(t, src)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	low := unix.Rlimit{Cur: 64, Max: old.Max}
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	list, err := Collect(context.Background(), fd, into(t, dst), Limits{Depth: 128}, false)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	if !errors.Is(err, unix.EMFILE) {
		t.Fatalf("%v:\n%s", err, lines(list))
	}
	if last := list[len(list)-1]; !strings.HasSuffix(last.Skipped, "too many open files") {
		t.Errorf("%+v", last)
	}
}

func TestDescriptorsAreClosed(t *testing.T) {
	src, _, _ := occupied(t)
	count := func() int {
		ents, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(ents)
	}
	fd := openDir(t, src)
	parent := newDir(t)
	before := count()
	for i, l := range []Limits{{}, {Files: 2}, {Bytes: 9}, {FileBytes: 1}, {Files: -1}, {Time: 1}} {
		for range 2 {
			d := into(t, filepath.Join(parent, fmt.Sprint(i)))
			Collect(context.Background(), fd, d, l, false)
			d.Close()
		}
	}
	if got := count(); got != before {
		t.Errorf("%d descriptors, were %d", got, before)
	}
}

// TestCloseError: a full network disk speaks only at close. Here the close fails
// because the descriptor is closed already.
func TestCloseError(t *testing.T) {
	eachDraft(t, func(t *testing.T) {
		src, dst := trees(t)
		write(t, filepath.Join(src, "f"), "program")
		list, err := collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, false, func(stage, _ string) {
			if stage == "filled" {
				must(t, unix.Close(fdOf(t, dst+"/")))
			}
		})
		if !errors.Is(err, unix.EBADF) {
			t.Error(err)
		}
		wantLines(t, list, `"f" file 7  (destination: bad file descriptor)`)
		verify(t, list, dst, Limits{})
	})
}

// fdOf finds the descriptor of the open file whose path holds name.
func fdOf(t *testing.T, name string) int {
	t.Helper()
	for fd := range 200 {
		if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.Contains(link, name) {
			return fd
		}
	}
	t.Fatalf("%q is not open", name)
	return -1
}

func TestModeError(t *testing.T) {
	c := &collector{ctx: context.Background(), limits: Defaults(), left: 10}
	var p [2]int
	must(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
	unix.Close(p[1])
	defer unix.Close(p[0])
	_, _, err := c.fill(p[0], &hostpath.Draft{FD: -1}, 0o600, "f")
	var d *destFault
	if !errors.As(err, &d) || d.err != unix.EBADF {
		t.Error(err)
	}
}

func TestReadUmask(t *testing.T) {
	proc, err := openProc()
	must(t, err)
	defer unix.Close(proc)
	old := syscall.Umask(0o137)
	got := readUmask(proc)
	syscall.Umask(old)
	if got != 0o137 {
		t.Errorf("umask %o", got)
	}
	if got := readUmask(openDir(t, newDir(t))); got != 0o077 {
		t.Errorf("without status: %o", got)
	}
}

// TestFalseProc: what is opened must be what was pinned.
func TestFalseProc(t *testing.T) {
	src, dst := trees(t)
	write(t, filepath.Join(src, "f"), "program")
	must(t, os.MkdirAll(filepath.Join(dst, "fd"), 0o755))
	pin, st, err := (&collector{}).pinEntry(openDir(t, src), "f")
	must(t, err)
	defer unix.Close(pin)
	write(t, filepath.Join(dst, "fd", fmt.Sprint(pin)), secret)
	if fd, err := (&collector{proc: openDir(t, dst)}).reopen(pin, st); fd != -1 || err != unix.ESTALE {
		t.Errorf("%d, %v", fd, err)
	}
}

// TestNeedOpenat2: a host without the system call is refused by its name.
func TestNeedOpenat2(t *testing.T) {
	const want = "collecting artifacts needs the system call openat2 (linux 5.6), which this host refuses: bad file descriptor"
	if err := needOpenat2(-1); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestNothingIsSeenWhileItIsWritten: a supervisor that is killed then leaves no
// part of a file, which a caller could take for the whole.
func TestNothingIsSeenWhileItIsWritten(t *testing.T) {
	for _, force := range []bool{false, true} {
		src, dst := trees(t)
		oneFile(t, src)
		looked := 0
		_, err := collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, force, func(stage, _ string) {
			if stage == "copied" || stage == "filled" || stage == "placing" {
				looked++
				if names, err := os.ReadDir(dst); err != nil || len(names) != 0 {
					t.Errorf("%s: %v, %v", stage, names, err)
				}
			}
		})
		must(t, err)
		if looked != 3 {
			t.Errorf("looked %d times", looked)
		}
	}
}
