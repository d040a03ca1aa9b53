package launch

import (
	"time"

	"sandglass/pkg/result"
	"sandglass/pkg/wire"
)

// lateTime is how much later than the supervisor's clock init's own ends the
// run. It bounds a run whose supervisor is stopped (SIGSTOP, a debugger), and
// must not come first on a busy host. How long the dying takes is no part of it:
// the supervisor's one signal is to init, and its clock ends with it.
const lateTime = 2 * time.Second

// initLimit is the time limit that init keeps, in milliseconds.
func initLimit(timeout time.Duration) uint64 {
	return min(uint64((timeout+lateTime).Milliseconds())+1, wire.MaxLimit)
}

// left is what the program has of its time limit. It counts from the program's start:
// the time that we took to look at it, or on a busy host to hear of it, is part of it.
func (s *session) left(now time.Time) time.Duration {
	return max(s.box.Timeout-now.Sub(s.started), 0)
}

// overdue says whether the program had passed its time limit by then.
func (s *session) overdue(now time.Time) bool {
	return !s.started.IsZero() && now.Sub(s.started) >= s.box.Timeout
}

// expired says whether there is nothing more to wait for.
func (s *session) expired() bool {
	switch {
	case s.cause != "":
		s.stuck = true
	case s.waits.release != nil:
		s.kill(result.Canceled) // nobody has wanted it for long enough
	case s.started.IsZero():
		// We may have been stopped, and the word of the start waits unread.
		if s.meet(); s.started.IsZero() && s.waits.release == nil {
			s.kill(result.Failed)
		}
	default:
		s.hear(lateTime)
		s.kill(result.Timeout)
	}
	return s.stuck
}

// seen ends a run for what the watchdog has seen.
func (s *session) seen(cause result.Outcome) {
	if s.waits.release != nil && cause == result.CPUTime {
		s.lose(errBusy)
		return
	}
	s.hear(soon)
	if s.overdue(time.Now()) {
		// A look that was held up because we were stopped says nothing about
		// the program.
		cause = result.Timeout
	}
	s.kill(cause)
}

// soon is how long a limit that has been passed waits for init's word of the end: what
// the program has left behind goes on meanwhile, and no cgroup may hold it.
const soon = 100 * time.Millisecond

// hear takes init's word of a program that has ended before we end it. On a busy host,
// or when we were stopped, that word waits unread, or for init's turn, while a clock
// fires: what ended in its time would be told as ended by us. That there is such a word
// to come is the kernel's to say. An init that is starved by what the program has left
// behind, or taken over, gains the time that its own clock gives it, and no more.
func (s *session) hear(most time.Duration) {
	if s.started.IsZero() || !s.dead() {
		return
	}
	late := time.NewTimer(most)
	defer late.Stop()
	for s.exited == nil && s.failed == nil && s.cause == "" && s.events != nil {
		select {
		case m, ok := <-s.events:
			s.take(m, ok)
		case <-late.C:
			return
		}
	}
}

// itself says whether the program has ended by itself: not after our kill.
func (s *session) itself() bool { return s.exited != nil && !s.late }
