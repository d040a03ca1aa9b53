package launch

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// TestTree: grandchildren are found, and the process itself is not among them.
func TestTree(t *testing.T) {
	cmd := exec.Command("sh", "-c", "exec 3<&0; cat <&3 & echo; cat") // without the 3 a cat behind & reads nothing and ends
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil { // the shell has forked
		t.Fatal(err)
	}
	self := &tree{init: os.Getpid()}
	found, ok := self.processes(far())
	has := func(pid int) bool {
		return slices.ContainsFunc(found, func(p process) bool { return p.pid == pid })
	}
	if !ok || !has(cmd.Process.Pid) || has(os.Getpid()) {
		t.Errorf("found %v, the child is %d", found, cmd.Process.Pid)
	}
	below := &tree{init: cmd.Process.Pid}
	if list, _ := below.processes(far()); len(list) == 0 {
		t.Error("the grandchild was not found")
	}
	for _, limit := range []int64{1 << 62, 0} {
		if got, ok := self.memory(limit, far()); !ok || got <= 0 {
			t.Errorf("memory %d, measured %v", got, ok)
		}
	}
	quick, _ := self.sum(quickly, 1<<62, far())
	exact, _ := self.sum(exactly, 1<<62, far())
	// Buffers of sockets are those of the whole namespace, which here is the host's:
	// what others send meanwhile is no part of the comparison.
	quick.kernel, exact.kernel = 0, 0
	// The kernel's counters behind the quick sum may be behind by some pages.
	if q, e := quick.total(false), exact.total(true); e <= 0 || q+1<<20 < e {
		t.Errorf("memory %d, exactly %d", q, e)
	}
}

func far() *look { return new(look) }

func past() *look {
	l := new(look)
	l.late.Store(true)
	return l
}

// TestTreeFiles: a file without a path counts once, by whoever has it open.
func TestTreeFiles(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	defer f.Close()
	self := newTree(os.Getpid())
	if self.shmem, err = shmemDevice(); err != nil {
		t.Fatal(err)
	}
	before, _ := self.files(&process{tasks: []int{os.Getpid()}}, map[uint64]bool{}, far())
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if got, ok := self.files(&process{tasks: []int{os.Getpid()}}, map[uint64]bool{}, far()); !ok || got != before+1<<20 {
		t.Errorf("%d bytes, want %d", got, before+1<<20)
	}
	if alive(1<<30) || !alive(os.Getpid()) {
		t.Error("who is alive is not known")
	}
}

// TestTreeLate: what cannot be measured in time is over the limit.
func TestTreeLate(t *testing.T) {
	self, past := newTree(os.Getpid()), past()
	if _, ok := self.processes(past); ok {
		t.Error("the processes were listed in no time")
	}
	w := newWatchdog(&Box{MemoryMax: 1 << 40, CPUTime: time.Hour})
	if got := w.memory(self, past); got <= 1<<40 {
		t.Errorf("memory %d, which is within the limit", got)
	}
	if got := w.cpu(self, past); got < time.Hour {
		t.Errorf("CPU time %s, which is within the limit", got)
	}
}

// TestWatchStuck: a look that never answers is reported, and nothing waits for it.
func TestWatchStuck(t *testing.T) {
	w := newWatchdog(&Box{})
	stuck := make(chan struct{})
	defer close(stuck)
	go w.watch(result.Memory, patience{look: time.Millisecond}, func(*look) bool { <-stuck; return false })
	if got := <-w.over; got != result.Memory {
		t.Errorf("reported %q", got)
	}
	w.stop()
}

func TestStatTicksOdd(t *testing.T) {
	if got := statTicks(1<<30, 11, 14); got != 0 {
		t.Errorf("a process that is not there used %d", got)
	}
}

// TestSwappedOut: what the kernel has written to the disk is held all the same, and so
// is what a kernel shows that tells nothing of that.
func TestSwappedOut(t *testing.T) {
	status := "Name:\tx\nVmPTE:\t      8 kB\nRssAnon:\t    100 kB\nRssShmem:\t     20 kB\n"
	rollup := "Pss:\t500 kB\nPss_Anon:\t60 kB\nPss_Shmem:\t10 kB\nSwap:\t9000 kB\n"
	for _, c := range []struct {
		status, rollup string
		quick, exact   used
	}{
		{status + "VmSwap:\t   4096 kB\n", rollup + "SwapPss:\t2048 kB\n", used{4204 << 10, 20 << 10}, used{2116 << 10, 10 << 10}},
		{status, rollup, used{108 << 10, 20 << 10}, used{68 << 10, 10 << 10}},
		{status + "VmSwap:\t   4096 kB\n", "", used{4204 << 10, 20 << 10}, used{4204 << 10, 20 << 10}},
	} {
		dir := strings.TrimSuffix(statDir(t, map[string]string{"status": c.status, "smaps_rollup": c.rollup}), "/")
		if got, ok := quicklyIn(dir); !ok || got != c.quick {
			t.Errorf("quickly %+v %v, want %+v", got, ok, c.quick)
		}
		if got, ok := exactlyIn(dir); !ok || got != c.exact {
			t.Errorf("exactly %+v %v, want %+v", got, ok, c.exact)
		}
	}
	if _, ok := quicklyIn(strings.TrimSuffix(statDir(t, map[string]string{"status": "Name:\tx\nState:\tZ\n"}), "/")); ok {
		t.Error("who has ended holds something")
	}
}
