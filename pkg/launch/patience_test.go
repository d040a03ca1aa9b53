package launch

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTooLong: a look that only waits for a CPU is no verdict, until the host pays
// for it; one that takes the time itself is.
func TestTooLong(t *testing.T) {
	const gb = 1 << 30
	for _, c := range []struct {
		name      string
		p         patience
		wall, own time.Duration
		left      []int64 // available memory, at each asking
		want      bool
	}{
		{"in its time, all its own", sampled, sampled.look - 1, sampled.look - 1, []int64{1}, false},
		{"its own", sampled, sampled.look, sampled.look / ownShare, []int64{gb}, true},
		{"others'", sampled, sampled.look, sampled.look/ownShare - 1, []int64{gb, gb / 2}, false},
		{"others', and memory goes", sampled, sampled.look, 0, []int64{gb, gb/2 - 1}, true},
		{"others', and memory is not told", sampled, sampled.look, 0, []int64{0}, true},
		{"others', to the last", sampled, 30*time.Second - 1, 0, []int64{gb}, false},
		{"others', for ever", sampled, 30 * time.Second, 0, []int64{gb}, true},
		{"many sockets", uncharged, 30*time.Second - 1, 30*time.Second - 1, []int64{gb, gb / 2}, false},
		{"many sockets, quick, and memory goes", uncharged, notQuick - 1, 0, []int64{gb, 1}, false},
		{"many sockets, and memory goes", uncharged, notQuick, 0, []int64{gb, gb/2 - 1}, true},
		{"others', many sockets, for ever", uncharged, 30 * time.Second, 0, []int64{gb}, true},
		{"page tables, and memory goes", exact, exact.look, 0, []int64{gb, gb/2 - 1}, true},
		{"a release", released, 5*time.Second - 1, 0, []int64{gb}, false},
		{"a release, for ever", released, 5 * time.Second, 0, []int64{gb}, true},
	} {
		l := &look{patience: c.p}
		got := false
		for _, left := range c.left {
			got = l.tooLong(c.wall, c.own, func() int64 { return left })
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLookAtWork: a look that works is late by its own time and says so once, with a
// part of it; one that ends in time says nothing.
func TestLookAtWork(t *testing.T) {
	told := make(chan int, 2)
	busy := patience{look: 20 * time.Millisecond, wait: time.Hour}
	whole := busy.begin(nil, func() { told <- 1 })
	part := busy.begin(whole, nil)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := unix.Gettid()
	for began := threadTime(self); threadTime(self)-began < 5*time.Second && !(part.late.Load() && whole.late.Load()); {
		part.over()
		whole.over()
	}
	if !part.over() || part.end() || whole.end() || len(told) != 1 {
		t.Errorf("told %d times", len(told))
	}
	quick := patience{look: time.Hour, wait: time.Hour}.begin(whole, func() { t.Error("late") })
	if !quick.over() {
		t.Error("a part goes on after the whole")
	}
	if !quick.end() {
		t.Error("a look of no time was late")
	}
}

// TestLeftOutInTime: what a release asks for is not waited for without an end, and what
// was not known by then counts later.
func TestLeftOutInTime(t *testing.T) {
	cmd, in := waitingChild(t)
	defer cmd.Wait()
	defer in.Close()
	w := newWatchdog(&Box{})
	if w.leaveOut(os.Getpid(), released); w.base <= 0 {
		t.Fatalf("%s of a child that has been started", w.base)
	}
	late := false
	for i := 0; i < 100_000 && !late; i++ { // the end comes at any place of the look
		w.leaveOut(os.Getpid(), patience{})
		late = w.base == 0
	}
	if !late {
		t.Error("a look without any time has ended with an answer each time")
	}
}

// TestExactSumHasAThread: the time that the kernel walks page tables for is the
// whole look's too, and all of it, the time blocked on a program's locks as well.
func TestExactSumHasAThread(t *testing.T) {
	l := sampled.begin(nil, nil)
	defer l.end()
	if _, ok := newTree(os.Getpid()).memory(1<<62, l); !ok || l.task != 0 {
		t.Errorf("%v, thread %d of a look that is over at once", ok, l.task)
	}
	if _, ok := newTree(os.Getpid()).memory(-1, l); !ok || l.task != unix.Gettid() {
		t.Errorf("%v, thread %d, want %d", ok, l.task, unix.Gettid())
	}
}

// TestBlocked: who waits in the kernel for a lock is told from who waits for a CPU.
func TestBlocked(t *testing.T) {
	before := threadTime(unix.Gettid())
	for threadTime(unix.Gettid()) == before {
	}
	if blocked(os.Getpid()) || blocked(1<<30) {
		t.Error("it is not blocked")
	}
	if available() <= 0 {
		t.Error("the host has no memory")
	}
	// The parent of a vfork(2) waits in the kernel until the child executes something.
	cmd, out := startPython(t, "import ctypes\nl = ctypes.PyDLL(None)\nif l.vfork() == 0: print(flush=True); l.pause()")
	defer func() { // the child after its parent, which is not to go on on what is left of the stack
		children := childrenOf(cmd.Process.Pid, cmd.Process.Pid)
		_ = cmd.Process.Kill()
		for _, child := range children {
			_ = unix.Kill(child, unix.SIGKILL)
		}
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if !blocked(cmd.Process.Pid) {
		t.Error("it is not told as blocked")
	}
}

// TestOneCallHasAThread: a call that may wait for a program's locks is the look's own
// time, in a look that has no thread; afterwards it has none again.
func TestOneCallHasAThread(t *testing.T) {
	defer func(real func(a, b, what int) bool) { kcmp = real }(kcmp)
	var l *look
	calls := 0
	kcmp = func(a, b, what int) bool {
		calls++
		if l.task != unix.Gettid() {
			t.Errorf("thread %d, want %d", l.task, unix.Gettid())
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.blocked += time.Second
		return false
	}
	self := process{pid: os.Getpid(), tasks: tasksOf(os.Getpid())[:2]}
	for _, lent := range []bool{true, false} {
		l, calls = patience{look: time.Hour, wait: time.Hour}.begin(nil, nil), 0
		l.slow.Store(!lent)
		if _, ok := self.memory(quickly, l); !ok {
			t.Error("not measured")
		}
		for range self.tables(l) {
		}
		if calls != 2 || (l.task == 0) != lent || l.own(time.Now()) < 2*time.Second {
			t.Errorf("lent %v: %d calls, thread %d, %s", lent, calls, l.task, l.own(time.Now()))
		}
		l.end()
	}
}
