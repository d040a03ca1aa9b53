package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/pkg/hostpath"
	"sandglass/pkg/result"
)

// swapCase changes one of the trees at a stage of one path.
type swapCase struct {
	name, stage, path string
	limits            Limits
	setup             func(t *testing.T, src string)
	swap              func(src, dst, outside string) error
	want              []string // the manifest
	wantErr           error
}

// replace puts something else at the name of an entry, which moves away.
func replace(path string, make func(string) error) error {
	return errors.Join(os.Rename(path, filepath.Join(filepath.Dir(filepath.Dir(path)), "moved")), make(path))
}

func linkTo(target string) func(string) error {
	return func(path string) error { return os.Symlink(target, path) }
}

func fifo(path string) error { return unix.Mkfifo(path, 0o644) }

func oneFile(t *testing.T, src string) { write(t, filepath.Join(src, "f"), "program") }

func oneDir(t *testing.T, src string) {
	must(t, os.Mkdir(filepath.Join(src, "d"), 0o755))
	write(t, filepath.Join(src, "d/file"), "program")
}

var swapCases = []swapCase{
	{name: "file becomes link before the pin", stage: "listed", path: "f", setup: oneFile,
		swap: func(src, _, out string) error { return replace(src+"/f", linkTo(out+"/file")) },
		want: []string{`"f" symlink 15  -> "../outside/file" (symbolic link)`}},
	{name: "file becomes link after the pin", stage: "pinned", path: "f", setup: oneFile,
		swap: func(src, _, out string) error { return replace(src+"/f", linkTo(out+"/file")) },
		want: []string{`"f" file 7 0644`}},
	{name: "file becomes FIFO before the pin", stage: "listed", path: "f", setup: oneFile,
		swap: func(src, _, _ string) error { return replace(src+"/f", fifo) },
		want: []string{`"f" fifo 0  (fifo)`}},
	{name: "file becomes FIFO after the pin", stage: "pinned", path: "f", setup: oneFile,
		swap: func(src, _, _ string) error { return replace(src+"/f", fifo) },
		want: []string{`"f" file 7 0644`}},
	{name: "file vanishes before the pin", stage: "listed", path: "f", setup: oneFile,
		swap: func(src, _, _ string) error { return os.Remove(src + "/f") },
		want: []string{`"f" unknown 0  (vanished while it was collected)`}},
	{name: "file vanishes after the pin", stage: "pinned", path: "f", setup: oneFile,
		swap: func(src, _, _ string) error { return os.Remove(src + "/f") },
		want: []string{`"f" file 7 0644`}},
	{name: "directory becomes link before the pin", stage: "listed", path: "d", setup: oneDir,
		swap: func(src, _, out string) error { return replace(src+"/d", linkTo(out)) },
		want: []string{`"d" symlink 10  -> "../outside" (symbolic link)`}},
	{name: "directory becomes link after the pin", stage: "pinned", path: "d", setup: oneDir,
		swap: func(src, _, out string) error { return replace(src+"/d", linkTo(out)) },
		want: []string{`"d" dir 0 0755`, `"d/file" file 7 0644`}},
	{name: "directory becomes link in the walk", stage: "listed", path: "d/file", setup: oneDir,
		swap: func(src, _, out string) error { return replace(src+"/d", linkTo(out)) },
		want: []string{`"d" dir 0 0755`, `"d/file" file 7 0644`}},
	{name: "file grows past the limit", stage: "opened", path: "f", setup: oneFile, limits: Limits{FileBytes: 10}, wantErr: &LimitError{},
		swap: func(src, _, _ string) error { return os.WriteFile(src+"/f", make([]byte, 11), 0) },
		want: []string{`"f" file 7  (grew past the limit while it was copied)`}},
	{name: "file grows past the total", stage: "opened", path: "f", setup: oneFile, limits: Limits{Bytes: 10}, wantErr: &LimitError{},
		swap: func(src, _, _ string) error { return os.WriteFile(src+"/f", make([]byte, 11), 0) },
		want: []string{`"f" file 7  (grew past the limit while it was copied)`}},
	{name: "file becomes sparse and huge", stage: "opened", path: "f", setup: oneFile, limits: Limits{Bytes: 1 << 20}, wantErr: &LimitError{},
		swap: func(src, _, _ string) error { return os.Truncate(src+"/f", 1<<40) },
		want: []string{`"f" file 7  (grew past the limit while it was copied)`}},
	{name: "file grows within the limits", stage: "opened", path: "f", setup: oneFile,
		swap: func(src, _, _ string) error { return os.WriteFile(src+"/f", make([]byte, 11), 0) },
		want: []string{`"f" file 11 0644`}},
	{name: "file shrinks", stage: "opened", path: "f", setup: oneFile,
		swap: func(src, _, _ string) error { return os.Truncate(src+"/f", 2) },
		want: []string{`"f" file 2 0644`}},
	{name: "name is taken by a file meanwhile", stage: "placing", path: "f", setup: oneFile, wantErr: &ExistsError{},
		swap: func(_, dst, _ string) error { return os.WriteFile(dst+"/f", []byte("caller"), 0o600) },
		want: []string{`"f" file 7  (exists (use --force))`}},
	{name: "name is taken by a link meanwhile", stage: "placing", path: "f", setup: oneFile, wantErr: &ExistsError{},
		swap: func(_, dst, out string) error { return os.Symlink(out+"/file", dst+"/f") },
		want: []string{`"f" file 7  (exists (use --force))`}},
	{name: "name is taken by a directory meanwhile", stage: "placing", path: "f", setup: oneFile, wantErr: &ExistsError{},
		swap: func(_, dst, _ string) error { return os.Mkdir(dst+"/f", 0o700) },
		want: []string{`"f" file 7  (exists as a dir in the destination; never replaced)`}},
	{name: "destination directory becomes a link in the walk", stage: "listed", path: "d/file", setup: oneDir,
		swap: func(_, dst, out string) error { return replace(dst+"/d", linkTo(out)) },
		want: []string{`"d" dir 0 0755`, `"d/file" file 7 0644`}},
	{name: "destination directory becomes a link when made", stage: "made", path: "d", setup: oneDir, wantErr: &CopyError{},
		swap: func(_, dst, out string) error { return errors.Join(os.Remove(dst+"/d"), os.Symlink(out, dst+"/d")) },
		want: []string{`"d" dir 0  (destination: not a directory)`}},
	{name: "destination name is a link to a directory", stage: "opened", path: "d", setup: oneDir, wantErr: &ExistsError{},
		swap: func(_, dst, out string) error { return os.Symlink(out, dst+"/d") },
		want: []string{`"d" dir 0  (exists as a symlink in the destination; never replaced)`}},
}

// TestSwap changes the trees in every gap that a collector could have. The
// outside, which stands for the host, is neither read nor written.
func TestSwap(t *testing.T) {
	for _, c := range swapCases {
		t.Run(c.name, func(t *testing.T) {
			eachDraft(t, func(t *testing.T) {
				src, dst := trees(t)
				dir := filepath.Dir(dst)
				outside := filepath.Join(dir, "outside")
				must(t, os.Mkdir(outside, 0o755))
				write(t, filepath.Join(outside, "file"), secret)
				before := snapshot(t, outside)
				c.setup(t, src)
				swapped := 0
				list, err := collect(context.Background(), openDir(t, src), into(t, dst), c.limits, false, func(stage, path string) {
					if stage == c.stage && path == c.path {
						swapped++
						must(t, c.swap(src, dst, "../outside"))
					}
				})
				if !sameKind(err, c.wantErr) {
					t.Errorf("error %v, want %T", err, c.wantErr)
				}
				if swapped != 1 {
					t.Errorf("swapped %d times", swapped)
				}
				wantLines(t, list, c.want...)
				if got := snapshot(t, outside); got != before {
					t.Errorf("outside changed:\n%s", got)
				}
				if got := snapshot(t, dst); strings.Contains(got, tempNames) || strings.Contains(got, secret) {
					t.Errorf("a temporary file or the secret is left:\n%s", got)
				}
			})
		})
	}
}

func sameKind(err, want error) bool {
	switch want.(type) {
	case *ExistsError:
		var e *ExistsError
		return errors.As(err, &e) && e.Count == 1
	case *CopyError:
		var e *CopyError
		return errors.As(err, &e) && e.Count == 1
	case *LimitError:
		var e *LimitError
		return errors.As(err, &e) && e.Count == 1
	}
	return err == nil
}

// TestTempNameSwapped: who can write to the destination may swap the temporary
// name; with force the rename then moves what stands there and writes nowhere.
func TestTempNameSwapped(t *testing.T) {
	useDraft(t, hostpath.NamedDraft)
	src, dst := trees(t)
	oneFile(t, src)
	victim := filepath.Join(filepath.Dir(dst), "victim")
	write(t, victim, secret)
	_, err := collect(context.Background(), openDir(t, src), into(t, dst), Limits{}, true, func(stage, _ string) {
		if stage == "copied" {
			names, err := filepath.Glob(filepath.Join(dst, tempNames+"*"))
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			must(t, errors.Join(os.Remove(names[0]), os.Symlink(victim, names[0])))
		}
	})
	must(t, err)
	if data, err := os.ReadFile(victim); string(data) != secret {
		t.Errorf("victim: %q, %v", data, err)
	}
	if info, err := os.Stat(victim); err != nil || info.Mode() != 0o644 {
		t.Errorf("victim: %v, %v", info.Mode(), err)
	}
}

func TestCancel(t *testing.T) {
	for _, stage := range []string{"listed", "copied"} {
		src, dst := trees(t)
		for _, name := range []string{"a", "b", "c"} {
			write(t, filepath.Join(src, name), name)
		}
		cause := errors.New("the caller's reason")
		ctx, cancel := context.WithCancelCause(context.Background())
		list, err := collect(ctx, openDir(t, src), into(t, dst), Limits{}, false, func(s, path string) {
			if s == stage && path == "b" {
				cancel(cause)
			}
		})
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", stage, err)
		}
		wantLines(t, list, `"a" file 1 0644`, `"b" file 1  (the caller's reason)`, `"." dir 0  (… and more: the caller's reason)`)
		verify(t, list, dst, Limits{})
	}
}

// TestCancelInLastFile: nobody comes after it to notice.
func TestCancelInLastFile(t *testing.T) {
	src, dst := trees(t)
	oneFile(t, src)
	ctx, cancel := context.WithCancel(context.Background())
	list, err := collect(ctx, openDir(t, src), into(t, dst), Limits{}, false, func(stage, _ string) {
		if stage == "copied" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	verify(t, list, dst, Limits{})
	wantLines(t, list, `"f" file 7  (context canceled)`, `"." dir 0  (… and more: context canceled)`)
}

func TestTimeLimit(t *testing.T) {
	src, dst := trees(t)
	oneFile(t, src)
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), Limits{Time: 1}, false)
	if !errors.Is(err, ErrTime) {
		t.Error(err)
	}
	verify(t, list, dst, Limits{})
	wantLines(t, list, `"." dir 0  (… and more: collecting artifacts reached its time limit)`)
}

// TestRace swaps entries of both trees as fast as it can while they are
// collected. Whatever comes, no byte of the secret comes and none of the
// program's data lands outside.
func TestRace(t *testing.T) {
	rounds := int64(3_000)
	if testing.Short() {
		rounds = 500
	}
	dir := newDir(t)
	outside := filepath.Join(dir, "outside")
	must(t, os.Mkdir(outside, 0o755))
	write(t, filepath.Join(outside, "f"), secret)
	before := snapshot(t, outside)
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	var swaps atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	must(t, os.Mkdir(src, 0o755))
	must(t, os.Mkdir(dst, 0o755))
	fd := openDir(t, src)
	go swapper(src, dst, outside, &swaps, stop, done)
	seen, collections := map[string]int{}, int64(0)
	dest := into(t, dst)
	for ; swaps.Load() < rounds || collections < rounds; collections++ {
		list, _ := Collect(context.Background(), fd, dest, Limits{}, true)
		for _, a := range list {
			seen[a.Type+" "+a.Skipped]++
			if a.Type == typeFile && a.Skipped == "" && a.Size != 7 && a.Size != 0 {
				t.Fatalf("%+v", a)
			}
		}
		checkNoSecret(t, list)
	}
	close(stop)
	<-done
	t.Logf("%d collections, %d swaps, entries met: %v", collections, swaps.Load(), seen)
	if got := snapshot(t, outside); got != before {
		t.Errorf("outside changed:\n%s", got)
	}
}

// swapper makes x of src and x of dst one thing after another, by rename so
// that no moment is without an x.
func swapper(src, dst, outside string, swaps *atomic.Int64, stop, done chan struct{}) {
	kinds := []func(string){
		func(p string) { os.WriteFile(p, []byte("program"), 0o644) },
		func(p string) { os.Symlink(filepath.Join(outside, "f"), p) },
		func(p string) { os.Mkdir(p, 0o755); os.WriteFile(filepath.Join(p, "f"), []byte("program"), 0o644) },
		func(p string) { os.Symlink(outside, p) },
		func(p string) { unix.Mkfifo(p, 0o644) },
	}
	for n := 0; ; n++ {
		swaps.Add(1)
		select {
		case <-stop:
			close(done)
			return
		default:
		}
		swapOne(filepath.Join(src, "x"), kinds[n%len(kinds)])
		// Only a directory and a link to one: the doors of a destination.
		swapOne(filepath.Join(dst, "x"), kinds[2+n%2])
	}
}

// swapOne makes a new thing beside path and exchanges the two names.
func swapOne(path string, make func(string)) {
	spare := filepath.Join(filepath.Dir(filepath.Dir(path)), "spare")
	os.RemoveAll(spare)
	make(spare)
	if unix.Renameat2(unix.AT_FDCWD, spare, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE) != nil {
		os.Rename(spare, path)
	}
}

// checkNoSecret looks at the hashes of what was written: the swapper may have
// put a link to the secret in the file's place since, so its name says nothing.
func checkNoSecret(t *testing.T, list []result.Artifact) {
	t.Helper()
	sum := sha256.Sum256([]byte(secret))
	for _, a := range list {
		if a.SHA256 == hex.EncodeToString(sum[:]) {
			t.Fatalf("the secret was collected as %q", a.Path)
		}
	}
}
