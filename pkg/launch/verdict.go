package launch

import (
	"fmt"

	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// verdict says who ended the run. The kernel's out-of-memory events come
// first: a clock that fires while the kernel is killing does not hide them.
// After them comes why we killed it, then what the program did to itself.
func (s *session) verdict() {
	e := s.end
	switch {
	// An init that failed on its way out has said why: that it could not be
	// read back any more is what came of it.
	case s.broken != nil && (s.failed == nil || s.failed.Type != wire.TypeFailed):
		e.Outcome, e.Error = result.Failed, "the sandbox was stopped: "+s.broken.Error()
	case s.failed != nil && (s.started.IsZero() || s.failed.Type == wire.TypeFailed):
		s.notStarted()
	case e.Stats.OOMKills > 0 || s.cause == result.Memory && !s.itself():
		e.Outcome = result.Memory
		e.Signal = int(unix.SIGKILL)
	case s.cause == result.Failed:
		e.Outcome, e.Error = result.Failed, fmt.Sprintf("setting up the sandbox took more than %s", setupTime)
	case s.box.OutputKill && (e.Stdout.Truncated || e.Stderr.Truncated):
		// It passed its limit before it ended, and before a clock ended it: when we
		// came to see that must not change the verdict.
		e.Outcome = result.Output
		e.Signal = int(unix.SIGKILL)
	case s.cause != "" && !s.itself():
		e.Outcome = s.cause
		e.Signal = int(unix.SIGKILL)
	case s.itself() && s.overdue(s.exitedAt):
		// By itself, but after its time: our clock was held up, or we were stopped.
		e.Outcome = result.Timeout
		e.Signal = int(unix.SIGKILL)
	case s.exited != nil:
		s.ended(unix.WaitStatus(s.exited.Status))
	case s.overdue(s.started.Add(e.Wall)):
		// Init's own clock ended it while we were stopped. By our clock it is late
		// as well, so this needs no word of init's.
		e.Outcome = result.Timeout
		e.Signal = int(unix.SIGKILL)
	default:
		e.Outcome, e.Error = result.Failed, "the sandbox's init ended without a word"
		if s.started.IsZero() {
			e.Error = "the sandbox's init ended during set-up without a word"
		}
	}
}

// ended is the program's own end.
func (s *session) ended(status unix.WaitStatus) {
	if status.Signaled() {
		s.end.Outcome, s.end.Signal = result.Signaled, int(status.Signal())
		return
	}
	s.end.Outcome, s.end.ExitCode = result.Exited, status.ExitStatus()
}
