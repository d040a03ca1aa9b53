package launch

import (
	"time"

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
