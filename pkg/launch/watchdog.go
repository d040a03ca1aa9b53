package launch

import (
	"time"

	"sandglass/pkg/result"
)

// sampleEvery is how often the watchdog looks. It bounds how far a run can
// pass a limit that no cgroup holds: by what it can use in that time.
const sampleEvery = 20 * time.Millisecond

// watchdog enforces what the kernel does not: CPU time of the whole tree (a
// cgroup counts it but has no limit for it), and memory when no cgroup holds
// it. A run that needs neither has none.
type watchdog struct {
	box    *Box
	ticker *time.Ticker
	tree   *tree

	cpuSeen    time.Duration
	memorySeen int64
}

func newWatchdog(b *Box) *watchdog { return &watchdog{box: b} }

// needed says which samples are wanted.
func (w *watchdog) needed() bool { return w.box.CPUTime > 0 || w.box.MemoryMax > 0 }

func (w *watchdog) start(initPID int) {
	if !w.needed() {
		return
	}
	w.tree = newTree(initPID)
	w.ticker = time.NewTicker(sampleEvery)
}

func (w *watchdog) ticks() <-chan time.Time {
	if w.ticker == nil {
		return nil
	}
	return w.ticker.C
}

func (w *watchdog) stop() {
	if w.ticker != nil {
		w.ticker.Stop()
	}
}

// look takes one sample and returns why the run must end, or "".
func (w *watchdog) look() result.Outcome {
	if w.box.CPUTime > 0 {
		if used, ok := w.cpu(); ok && used >= w.box.CPUTime {
			return result.CPUTime
		}
	}
	if w.box.MemoryMax > 0 {
		used := w.tree.memory(w.box.MemoryMax)
		w.memorySeen = max(w.memorySeen, used)
		if used > w.box.MemoryMax {
			return result.Memory
		}
	}
	return ""
}

// last looks at the living once more before they are killed.
func (w *watchdog) last() {
	if w.tree != nil {
		w.cpu()
	}
}

// cpu is the tree's CPU time: the cgroup's counter, or the sum over processes.
func (w *watchdog) cpu() (time.Duration, bool) {
	if g := w.box.Group; g != nil {
		if used, err := g.CPUUsage(); err == nil {
			return used, true
		}
	}
	used := w.tree.cpu()
	w.cpuSeen = max(w.cpuSeen, used)
	return used, true
}
