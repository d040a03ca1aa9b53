package launch

import (
	"time"

	"sandglass/internal/refusal"
)

// livesOn is of a sandbox that nothing ends, and findIt what shows it.
const (
	livesOn = "the sandbox was killed and does not end: a process of it waits in the kernel, for a device or a network file system"
	findIt  = "ps -eo pid,stat,wchan:32,args | grep ' D'   # what it waits for"
)

// over says whether a run is over, while the kernel still takes the sandbox apart:
// init's memory, its mounts, its network, the PID namespace. That takes longer than
// a short program, and changes nothing of the result: the figures are read, the
// verdict made and the groups removed meanwhile. Whoever has no session to go on in
// waits for the rest by Ending.Wait before it says that the run is over.
//
// It is over when init has told the program's end and the group that the program
// was seen in has nobody: what it starts is in there, whatever it does, and leaves
// by ending alone. Init's word is not relied on. It has nothing more to do, and gets
// SIGKILL here, which no instruction of its own follows.
//
// Where no group counts the program's processes and their time, and where we have
// ended it, what tells is init's end, which is that of the PID namespace.
func (s *session) over() bool {
	g := s.box.Group
	if !s.itself() || s.cause != "" || g == nil || !s.watch.counted() {
		return false
	}
	kill(s.pidfd)
	empty, err := g.Empty()
	return err == nil && empty
}

// leave gives up what the run had: at once when init is gone, otherwise when it is,
// see Ending.Wait.
func (s *session) leave() {
	if s.stuck || closed(s.reaped) {
		s.close()
		return
	}
	gone := make(chan *refusal.Error, 1)
	s.end.gone = gone
	go func() {
		late := time.NewTimer(reapTime)
		defer late.Stop()
		var left *refusal.Error
		select {
		case <-s.reaped:
		case <-late.C:
			left = refusal.Newf(livesOn).Hint(findIt)
		}
		s.close()
		gone <- left
	}()
}

// Pending says whether the kernel is not done with the sandbox. No process of the
// program is left.
func (e *Ending) Pending() bool { return e.gone != nil }

// Wait returns when nothing of the sandbox is left but its groups, or says why
// something is. It takes reapTime at most, and is called once.
func (e *Ending) Wait() *refusal.Error {
	if e.gone == nil {
		return nil
	}
	left := <-e.gone
	e.Lives = left != nil
	return left
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
