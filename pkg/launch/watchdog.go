package launch

import (
	"fmt"
	"sync/atomic"
	"time"

	"sandglass/internal/sys"
	"sandglass/pkg/result"
)

// sampleEvery is how often the watchdog looks. It bounds how far a run can
// pass a limit that no cgroup holds: by what it can use in that time.
const sampleEvery = 20 * time.Millisecond

// watchdog enforces what the kernel does not: CPU time of the whole tree (a
// cgroup counts it but has no limit for it), memory and the share of the CPU when
// no cgroup holds them, and what the kernel charges no cgroup for (buffers of
// sockets, file locks). It looks on goroutines of its own, so that no clock and
// no kill ever waits for it.
type watchdog struct {
	box  *Box
	over chan result.Outcome // why the run must end
	done chan struct{}

	owned *sys.Owned // see tree

	still *still        // of a sandbox that waits, nil of one that runs
	most  time.Duration // CPU time of the tree, 0: any
	base  time.Duration // CPU time that does not count: of an interpreter before it had its text
	spent *tree         // by which base was taken, nil for none: it knows who has used it

	before host // of the host's, before the program runs

	cpuSeen, memorySeen atomic.Int64 // highest samples
}

// watches is how many there are at most; each reports once.
const watches = 3

// newWatchdog is called while init is at work: what the host has of sockets' pages
// is read then, and costs the start no time.
func newWatchdog(b *Box) *watchdog {
	w := &watchdog{box: b, most: b.CPUTime, over: make(chan result.Outcome, watches), done: make(chan struct{})}
	c, _ := countsIn("/proc/self/net/") // if it cannot be told, all that there is later has grown
	w.before.udp.see(c.packets)
	w.before.tcp.see(c.pages)
	w.before.slabs = slabs()
	return w
}

// start begins to watch. Init must be alive: what cannot be seen now is an
// error, for later it would look like a program that uses nothing.
func (w *watchdog) start(initPID int) error {
	if w.still != nil {
		go w.still.follow(w.done)
	}
	if w.most > 0 {
		t := w.spent
		if t == nil {
			t = w.tree(initPID)
		}
		if err := t.blind("children"); err != nil && !w.counted() {
			return fmt.Errorf("its CPU time cannot be watched: %w", err)
		}
		go w.watch(result.CPUTime, sampled, func(l *look) bool { return w.cpu(t, l) >= w.most })
	}
	if w.box.FreeCPUs > 0 {
		t := w.tree(initPID)
		if err := t.blind("children"); err != nil {
			return fmt.Errorf("its processes cannot be watched: %w", err)
		}
		go w.repeat(sampled.pause, func() bool {
			t.calm(w.box.FreeCPUs)
			return true
		})
	}
	t := w.tree(initPID)
	if err := t.blind("net"); err != nil {
		return fmt.Errorf("its sockets cannot be watched: %w", err)
	}
	if w.box.MemoryMax > 0 {
		if err := t.blind("children"); err != nil {
			return fmt.Errorf("its memory cannot be watched: %w", err)
		}
		var err error
		if t.shmem, err = shmemDevice(); err != nil {
			return fmt.Errorf("its memory cannot be watched: %w", err)
		}
		go w.watch(result.Memory, sampled, func(l *look) bool { return w.memory(t, l) > w.box.MemoryMax })
	} else if w.box.UnchargedMax > 0 {
		go w.watch(result.Memory, uncharged, func(l *look) bool {
			used, ok := t.sockets(unchargedSocket, w.box.UnchargedMax, l)
			return !ok || used > w.box.UnchargedMax
		})
		go w.watch(result.Memory, uncharged, func(l *look) bool {
			used, ok := t.locks(w.box.UnchargedMax, l)
			return !ok || used > w.box.UnchargedMax
		})
	}
	return nil
}

// tree is one for a look of its own.
func (w *watchdog) tree(init int) *tree {
	t := newTree(init)
	t.owned, t.host = w.owned, w.before
	return t
}

func (w *watchdog) stop() { close(w.done) }

// watch looks again and again until see says that the limit is passed, or does
// not answer in time.
func (w *watchdog) watch(cause result.Outcome, p patience, see func(l *look) bool) {
	report := func() { w.over <- cause } // there is room
	w.repeat(p.pause, func() bool {
		l := p.begin(nil, report)
		over := see(l)
		if !l.end() {
			return false
		}
		if over {
			report()
		}
		return !over
	})
}

// repeat calls look until that is false or the run is over.
func (w *watchdog) repeat(longest time.Duration, look func() bool) {
	moved := w.still.next()
	pause := time.NewTimer(sampleEvery)
	defer pause.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-pause.C:
		}
		if !w.still.await(moved, w.done) {
			return
		}
		moved = w.still.next()
		began := time.Now()
		if !look() {
			return
		}
		pause.Reset(max(sampleEvery, min(4*time.Since(began), longest)))
	}
}

// counted says whether a cgroup counts the CPU time.
func (w *watchdog) counted() bool {
	_, ok := w.groupCPU()
	return ok
}

// cpu is the tree's CPU time: the cgroup's counter, or the sum over processes.
func (w *watchdog) cpu(t *tree, l *look) time.Duration {
	if used, ok := w.groupCPU(); ok {
		return used - w.base
	}
	used, ok := t.cpu(l)
	if !ok {
		return w.most
	}
	raise(&w.cpuSeen, int64(used-w.base))
	return used - w.base
}

func (w *watchdog) groupCPU() (used time.Duration, ok bool) {
	if w.box.Group == nil {
		return 0, false
	}
	used, err := w.box.Group.CPUUsage()
	return used, err == nil
}

// leaveOut has the tree's CPU time up to now not count. What cannot be measured in time
// counts. The tree is kept: a process that ends before the first look, waited for by
// nobody, would else take what it has used out of the sum and leave it in base, for
// others to use once more.
func (w *watchdog) leaveOut(initPID int, p patience) {
	if used, ok := w.groupCPU(); ok {
		w.base = used
		return
	}
	l := p.begin(nil, nil)
	defer l.end()
	w.spent = w.tree(initPID)
	w.base, _ = w.spent.cpu(l)
}

func (w *watchdog) memory(t *tree, l *look) int64 {
	used, ok := t.memory(w.box.MemoryMax, l)
	raise(&w.memorySeen, used)
	if !ok {
		return w.box.MemoryMax + 1
	}
	return used
}

// raise keeps the highest value. Each has one writer.
func raise(highest *atomic.Int64, n int64) { highest.Store(max(highest.Load(), n)) }
