package launch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A program can make its figures slow to read (many processes that map much, page
// tables that it keeps locked), and take memory meanwhile: what cannot be measured
// in time is over the limit. A busy host makes every look slow: the looking thread
// waits for a CPU, and where many runs share a process, for its turn there. With 64
// clients of sessions on two CPUs that was 99 parts of 100 of a look's time, and
// good programs were told as out of memory.
//
// So it is what a look itself takes that counts: the CPU time of its thread, and the
// time in which that is blocked in the kernel, on a lock that the program may hold.
// A program alone cannot keep the thread from a CPU for long, for its crowd is made
// nice (see crowdSize): it has no more than a few times what the look has. Many
// together can: so there is an end to waiting, and an earlier one when the host
// loses its memory meanwhile, which is the harm that all this is to stop.

// patience is how long a watch may take.
type patience struct {
	// look is how long one look has at least.
	look time.Duration
	// wait is how long it has at most, whoever keeps it from its end.
	wait time.Duration
	// pause bounds the wait after a look that took long. The supervisor spends a
	// fifth of one CPU on looking at most, until that is reached.
	pause time.Duration
}

var (
	sampled = patience{look: 5 * time.Second, wait: 30 * time.Second, pause: 250 * time.Millisecond}
	// exact is for the sums that the kernel walks page tables for.
	exact = patience{look: 2 * time.Second, wait: 12 * time.Second}
	// uncharged is for what no cgroup is charged for: sockets, of which there may be
	// a hundred thousand, and locks, which may lie behind each of as many
	// descriptors. A cgroup holds everything else meanwhile.
	uncharged = patience{look: 30 * time.Second, wait: 30 * time.Second, pause: 2 * time.Second}
	// released is for the one look at what a program used while it waited for its
	// text: the clocks and kills of the run wait for it.
	released = patience{look: 5 * time.Second, wait: 5 * time.Second}
)

// After its time a look is late when it has taken a part of that itself. It is, too,
// when half of the memory is gone that the host had once the look was not quick.
const (
	ownShare    = 4
	memoryShare = 2
	notQuick    = 5 * time.Second
)

// askEvery is how often it is asked what a look that has not ended does.
const askEvery = 100 * time.Millisecond

// look is one look of a watch. One that is not over soon has a thread for itself from
// then on, whose time can be told from others'. To give each one a thread would cost
// a session of 64 more than its looks do.
type look struct {
	patience
	within *look  // the look that this one is a part of
	report func() // called once when it is late, even while it waits for a lock on a thread of its own
	late   atomic.Bool
	slow   atomic.Bool // it is to take a thread
	began  time.Time

	mu      sync.Mutex
	task    int           // its thread, 0 before it has one
	spent   time.Duration // of the thread, before
	ended   bool
	timer   *time.Timer
	asked   time.Time
	blocked time.Duration
	least   int64 // what the host must have left
}

// begin is on the goroutine that looks, which calls end.
func (p patience) begin(within *look, report func()) *look {
	now := time.Now()
	l := &look{patience: p, within: within, report: report, began: now, asked: now}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(min(askEvery, p.look), l.ask)
	return l
}

// end says whether it came in time; if not, that has been reported.
func (l *look) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.task != 0 {
		runtime.UnlockOSThread()
	}
	l.ended = true
	l.timer.Stop()
	return !l.late.Load()
}

// take gives the look the thread that it is on.
func (l *look) take() {
	l.slow.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.task == 0 {
		runtime.LockOSThread()
		l.task = unix.Gettid()
		l.spent = threadTime(l.task)
	}
}

// during gives it one for a call that may wait for a program's locks: nothing asks the
// look before that is over.
func (l *look) during(call func()) {
	lent := l.task == 0 && !l.slow.Load()
	if l.task == 0 {
		l.take()
	}
	call()
	if !lent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	runtime.UnlockOSThread()
	l.task = 0
}

// over says that no answer is waited for any more. The look asks it again and again.
func (l *look) over() bool {
	if l.slow.Load() {
		l.take()
	}
	return l.late.Load() || l.within != nil && l.within.over()
}

// ask judges a look that has not ended.
func (l *look) ask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	now := time.Now()
	l.slow.Store(l.task == 0)
	if !l.tooLong(now.Sub(l.began), l.own(now), available) {
		l.timer.Reset(askEvery)
		return
	}
	l.late.Store(true)
	if l.report != nil {
		l.report()
	}
}

// own is the look's time while it has a thread.
func (l *look) own(now time.Time) time.Duration {
	since := now.Sub(l.asked)
	l.asked = now
	if l.task == 0 {
		return l.blocked // in calls that are over
	}
	if blocked(l.task) {
		l.blocked += min(since, 2*askEvery) // who asks may have waited for a CPU as well
	}
	return threadTime(l.task) - l.spent + l.blocked
}

// tooLong judges by the time that has passed and the part of it that is the look's.
func (l *look) tooLong(wall, own time.Duration, available func() int64) bool {
	if wall >= l.wait || wall >= l.look && own >= l.look/ownShare {
		return true
	}
	if wall < min(l.look, notQuick) {
		return false
	}
	left := available()
	if l.least == 0 {
		l.least = left / memoryShare
	}
	return left <= 0 || left < l.least
}

// threadTime is the CPU time of a thread of this process: clock_getcpuclockid(3)'s
// clock for one, ~TID<<3 | CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED. Where there is none
// all time that passes counts.
func threadTime(task int) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^task<<3|6), &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}

// blocked says whether a thread waits in the kernel for something other than a CPU
// or its turn in this process.
func blocked(task int) bool {
	stat, err := statOf(procOf(task))
	return err == nil && len(stat) > 0 && string(stat[0]) == "D"
}

// available is the memory that the host has for programs, 0 when it does not say.
func available() int64 {
	v, _ := kilobytes("/proc/meminfo", "MemAvailable:")
	return v[0]
}
