package launch

import (
	"bytes"
	"os"
	"sync"
	"time"
)

// An interpreter that waits for its text does nothing, and there may be hundreds of
// them: a whole look at each every 20 ms would take the CPUs. But what it has been
// given by an image, or by a directory that an earlier run could write to, may do as
// it likes meanwhile. Nothing takes memory, sockets or locks without a moment of CPU
// time, and to ask a process's clock is one short call that no lock of the program's
// holds up. So all looks are as often as at a program that runs while any clock moves.
//
// To stop the processes instead would stop nobody: a timer made before (timer_create(2)
// with SIGCONT, fcntl(2) with F_SETSIG) lets them go on, and one that is ended lets the
// kernel do that with the rest of its group (exit_notify).

// idleEvery is how often a sandbox of which nothing runs is looked at all the same.
const idleEvery = time.Second

// mostStill is how many processes may be asked for their clocks. More are a sandbox
// that does not wait.
const mostStill = 8

// still tells the looks at a sandbox that waits when there is something to see.
type still struct {
	init int
	seen []clock

	mu    sync.Mutex
	moved chan struct{} // closed when something has run, and replaced
}

// clock is the CPU time of a process.
type clock struct {
	pid  int
	used time.Duration
}

func newStill(init int) *still { return &still{init: init, moved: make(chan struct{})} }

// follow asks until done is closed. It does so when all others do: one timer then
// wakes the supervisor for any number of sandboxes.
func (s *still) follow(done <-chan struct{}) {
	next := func() time.Duration { return sampleEvery - time.Duration(time.Now().UnixNano())%sampleEvery }
	tick := time.NewTimer(next())
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if !s.holds() {
			s.mu.Lock()
			close(s.moved)
			s.moved = make(chan struct{})
			s.mu.Unlock()
		}
		tick.Reset(next())
	}
}

// holds says whether nothing has run since the last call.
func (s *still) holds() bool {
	same := len(s.seen) > 0 && everyCPUTicks()
	for _, c := range s.seen {
		used, ok := processTime(c.pid)
		same = same && ok && used == c.used
	}
	if !same {
		s.seen = clocksOf(s.init)
	}
	return same
}

// clocksOf asks all processes that it is told of, none where it cannot ask one. Each is
// asked before its children are listed, so that who makes another later has moved on. A
// list can lack a child whose sibling is reaped at that moment (proc_pid_children(5)):
// what that one does alone is seen once a second.
func clocksOf(init int) (list []clock) {
	pids := []int{init}
	for i := 0; i < len(pids); i++ {
		if i > 0 {
			used, ok := processTime(pids[i])
			if !ok || i > mostStill {
				return nil
			}
			list = append(list, clock{pids[i], used})
		}
		for _, task := range tasksOf(pids[i]) {
			pids = append(pids, childrenOf(pids[i], task)...)
		}
	}
	return list
}

// everyCPUTicks: the clock of who runs is brought up to date by each tick, 10 ms at most,
// but on CPUs that are to have none (nohz_full) only once a second.
var everyCPUTicks = sync.OnceValue(func() bool {
	text, err := os.ReadFile("/sys/devices/system/cpu/nohz_full")
	return os.IsNotExist(err) || err == nil && !bytes.ContainsAny(text, "0123456789")
})

// next is closed when something runs from now on; nil for a sandbox that does not wait.
func (s *still) next() <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}

// await returns when there is something to see, or idleEvery is over, and false when
// done is closed.
func (s *still) await(moved, done <-chan struct{}) bool {
	if s == nil {
		return true
	}
	late := time.NewTimer(idleEvery)
	defer late.Stop()
	select {
	case <-done:
		return false
	case <-moved:
	case <-late.C:
	}
	return true
}
