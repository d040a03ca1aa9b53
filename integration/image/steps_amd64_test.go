package image

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/image"
	"sandglass/pkg/image/store"
	"sandglass/pkg/image/unpack"
)

// steps are the calls by which a store changes. Between two of them nothing does.
var steps = map[uint64]string{
	unix.SYS_WRITE: "write", unix.SYS_OPENAT2: "openat2", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_LINKAT: "linkat", unix.SYS_SYMLINKAT: "symlinkat",
	unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_FCHMOD: "fchmod", unix.SYS_UTIMENSAT: "utimensat",
	unix.SYS_FLOCK: "flock",
}

// epoch is the time of files whose image is to be the same each time.
var epoch = time.Unix(1e9, 0)

// tracer runs the tool up to its nth step, and kills it there, or has that step fail.
type tracer struct {
	n     int
	errno syscall.Errno // 0 for a signal
	sig   unix.Signal   // SIGKILL without one

	at    string // the step that was met, "" for none: it ended before
	count int
	fail  map[int]bool // threads whose call fails at its end
	pid   int
	stat  unix.WaitStatus
}

// run needs no process of its own: with WNOTHREAD a thread waits for what it traces alone.
func (tr *tracer) run(t *testing.T, args ...string) (exit int, text string) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(testkit.ImageTool(t), args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Release()
	tr.pid, tr.fail = cmd.Process.Pid, map[int]bool{}
	begun := map[int]bool{}
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ECHILD {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		tr.stopped(tid, ws, begun)
	}
	if tr.stat.Signaled() {
		exit = 128 + int(tr.stat.Signal())
	} else {
		exit = tr.stat.ExitStatus()
	}
	all, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return exit, string(all)
}

func (tr *tracer) stopped(tid int, ws unix.WaitStatus, begun map[int]bool) {
	if ws.Exited() || ws.Signaled() {
		if tid == tr.pid {
			tr.stat = ws
		}
		return
	}
	sig := 0
	switch {
	case !begun[tid]: // the stop that each thread begins with
		begun[tid] = true
		if tid == tr.pid {
			unix.PtraceSetOptions(tid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL)
		}
	case ws.StopSignal() == unix.SIGTRAP|0x80:
		tr.call(tid)
	case ws.StopSignal() != unix.SIGTRAP:
		sig = int(ws.StopSignal())
	}
	unix.PtraceSyscall(tid, sig)
}

// call is the begin or the end of one.
func (tr *tracer) call(tid int) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return
	}
	if tr.fail[tid] {
		delete(tr.fail, tid)
		regs.Rax = uint64(-int64(tr.errno))
		unix.PtraceSetRegs(tid, &regs)
		return
	}
	if int64(regs.Rax) != -int64(unix.ENOSYS) || tr.at != "" { // at its begin the result is ENOSYS
		return
	}
	name := steps[regs.Orig_rax]
	if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(regs.Rdi))); name == "" || name == "write" && (regs.Rdi < 3 || !strings.HasPrefix(to, "/")) {
		return // the runtime's, or the answer
	}
	if tr.count++; tr.count != tr.n {
		return
	}
	tr.at = name
	if tr.errno == 0 {
		unix.Kill(tr.pid, cmp.Or(tr.sig, unix.SIGKILL))
		return
	}
	tr.fail[tid] = true
	regs.Orig_rax = ^uint64(0) // no such call: it is not made
	unix.PtraceSetRegs(tid, &regs)
}

// shop is a store that is tried again and again, with one image in it.
type shop struct {
	*testing.T
	s   *image.Store
	old string // its image
}

// roots are two directories that share a file.
func newShop(t *testing.T) (*shop, string) {
	t.Setenv("XDG_DATA_HOME", testkit.Dir(t))
	t.Setenv("XDG_CACHE_HOME", testkit.Dir(t))
	first, second := testkit.Dir(t), testkit.Dir(t)
	for name, text := range map[string]string{first + "/shared": "1", second + "/shared": "1", second + "/d/own": "2"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644), os.Chtimes(name, epoch, epoch)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("shared", second+"/link"); err != nil {
		t.Fatal(err)
	}
	s, err := store.Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := &shop{T: t, s: s}
	h.old = h.bring("old", first)
	return h, second
}

// bring imports in this process.
func (h *shop) bring(name, dir string) string {
	h.Helper()
	w, err := store.Begin(h.s, &store.Stopper{})
	if err != nil {
		h.Fatal(err)
	}
	u, err := unpack.Import(dir, unpack.Defaults(), w)
	id := ""
	if err == nil {
		id, err = w.Publish(u, name, true)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		h.Fatal(err)
	}
	return id
}

// sound says what names there are, each of which means an image that is whole.
func (h *shop) sound(when string) []string {
	h.Helper()
	names, err := h.s.Names()
	if err != nil {
		h.Fatalf("%s: %v", when, err)
	}
	for _, n := range names {
		img, err := h.s.Find(n)
		if err != nil {
			h.Fatalf("%s: the name %s: %v", when, n, err)
		}
		if bad, err := store.Verify(h.s, img); err != nil || len(bad) > 0 {
			h.Fatalf("%s: %s: %q, %v", when, n, bad, err)
		}
		img.Close()
	}
	return names
}

// all is every path of the store, but for contents and images' own.
func (h *shop) all() (list []string) {
	for _, pattern := range []string{"names/*", "names/.*", "images/*", "tmp/*", "files/*/*"} {
		found, err := filepath.Glob(filepath.Join(h.s.Path, pattern))
		if err != nil {
			h.Fatal(err)
		}
		for _, f := range found {
			list = append(list, strings.TrimPrefix(f, h.s.Path+"/"))
		}
	}
	return list
}

// pruned is what is left once what nobody has a name for is taken away.
func (h *shop) pruned(when string) []string {
	h.Helper()
	if _, err := store.Prune(h.s); err != nil {
		h.Fatalf("%s: prune: %v", when, err)
	}
	return h.all()
}

// same compares what is left. Of the contents some may not be shared: an import does
// that last, and no image is the worse for it.
func (h *shop) same(when string, left, want []string) {
	h.Helper()
	missing := slices.DeleteFunc(slices.Clone(want), func(p string) bool { return slices.Contains(left, p) || strings.HasPrefix(p, "files/") })
	more := slices.DeleteFunc(slices.Clone(left), func(p string) bool { return slices.Contains(want, p) })
	if len(missing) > 0 || len(more) > 0 {
		h.Errorf("%s: missing %q, too many %q", when, missing, more)
	}
}

// Whoever kills an import, a build, a removal or a prune, at whatever step, leaves a store in
// which every name means a whole image, and from which prune takes the rest.
func TestKilledAtEveryStep(t *testing.T) {
	h, dir := newShop(t)
	without := h.pruned("before")
	h.bring("new", dir)
	with := h.pruned("before")
	nameless := func() {
		h.bring("new", dir)
		if err := os.Remove(h.s.Path + "/names/new"); err != nil {
			t.Fatal(err)
		}
	}
	none := func() { store.Remove(h.s, "new", false) }
	none()
	fromHost := []string{"from-host", "--name", "new", testkit.StaticBusybox(t)}
	if exit, text := (&tracer{}).run(t, fromHost...); exit != 0 {
		t.Fatal(text)
	}
	built := h.pruned("before")
	for _, op := range []struct {
		args    []string
		before  func()
		with    []string // what there is when the image is
		instead bool     // the image is there before
		every   int      // of its steps: what is built is published as what is imported
	}{
		{[]string{"import", "--name", "new", dir}, none, with, false, 1},
		{[]string{"import", "--force", "--name", "new", dir}, func() { h.bring("new", dir) }, with, true, 2},
		{fromHost, none, built, false, 12},
		{[]string{"rm", "new"}, func() { h.bring("new", dir) }, with, true, 1},
		{[]string{"prune"}, nameless, with, false, 2},
	} {
		met := map[string]int{}
		for n := 1; ; n += op.every {
			op.before()
			tr := &tracer{n: n}
			exit, text := tr.run(t, op.args...)
			when := fmt.Sprintf("%s killed at step %d, %s", op.args[0], n, tr.at)
			if tr.at == "" {
				if exit != 0 {
					t.Errorf("%s without an end: exit %d, %s", op.args[0], exit, text)
				}
				break
			}
			if met[tr.at]++; exit != 137 {
				t.Fatalf("%s: exit %d, %s", when, exit, text)
			}
			names, want := h.sound(when), without
			if slices.Contains(names, "new") {
				want = op.with
			} else if op.instead && op.args[0] == "import" {
				t.Errorf("%s: the image that was there is gone", when)
			}
			h.same(when, h.pruned(when), want)
		}
		if len(met) < 3 {
			t.Errorf("%s: only %v were met", op.args[0], met)
		}
		t.Logf("%v: %v", op.args[:1], met)
	}
}

// An import that is told to stop, at whatever step, has taken its work away when it
// ends, and says whether there is an image.
func TestStoppedAtEveryStep(t *testing.T) {
	h, dir := newShop(t)
	without := h.pruned("before")
	h.bring("new", dir)
	with := h.pruned("before")
	ends := map[int]int{}
	for n := 1; ; n++ {
		store.Remove(h.s, "new", false)
		tr := &tracer{n: n, sig: unix.SIGINT}
		exit, text := tr.run(t, "import", "--name", "new", dir)
		if tr.at == "" {
			break
		}
		when, want := fmt.Sprintf("stopped at step %d, %s", n, tr.at), without
		if names := h.sound(when); exit == 0 {
			want = with
		} else if exit != 130 || text != "sandglass: error: image import: stopped by SIGINT: nothing is left of it\n" || len(names) != 1 {
			t.Errorf("%s: exit %d, %q, %q", when, exit, text, names)
		}
		ends[exit]++
		h.same(when, h.all(), want)
	}
	if ends[130] < 10 {
		t.Errorf("ends: %v", ends)
	}
}

// An import of which one step fails, as on a full disk, is refused and leaves
// nothing, or has done without.
func TestEveryStepFails(t *testing.T) {
	h, dir := newShop(t)
	without := h.pruned("before")
	h.bring("new", dir)
	with := h.pruned("before")
	refused := 0
	for n := 1; ; n++ {
		store.Remove(h.s, "new", false)
		tr := &tracer{n: n, errno: unix.ENOSPC}
		exit, text := tr.run(t, "import", "--name", "new", dir)
		if tr.at == "" {
			break
		}
		when := fmt.Sprintf("step %d, %s, fails", n, tr.at)
		want := without
		switch h.sound(when); exit {
		case 0:
			want = with
		case 125:
			if refused++; !strings.HasPrefix(text, "sandglass: error: ") || !strings.Contains(text, "no space left on device") {
				t.Errorf("%s: %s", when, text)
			}
		default:
			t.Errorf("%s: exit %d, %s", when, exit, text)
		}
		if exit == 125 {
			h.same(when, h.all(), want)
		}
		h.same(when, h.pruned(when), want)
	}
	if refused < 10 {
		t.Errorf("only %d steps were refused", refused)
	}
}
