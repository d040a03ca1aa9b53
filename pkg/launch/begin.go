package launch

import (
	"time"

	"sandglass/pkg/wire"
)

// begin takes the word that the program runs, looks at it from outside, and lets
// init go on.
func (s *session) begin(m *message) bool {
	if !s.started.IsZero() || s.networked != (s.box.Network != nil) || !s.mayStart() || !s.answer(m) {
		s.abort(wire.ErrMalformed)
		return false
	}
	if s.box.Hold == nil {
		s.started = time.Now()
	}
	rb, err := s.readBack(m.fds[0])
	if err == nil {
		err = rb.Check()
	}
	if err != nil {
		s.unseen(err)
		return false
	}
	rb.Landlock = int(m.report.Landlock)
	s.end.ReadBack = rb
	s.setupCPU, _ = processTime(s.pid)
	if s.box.Hold != nil {
		if err := s.hold(m); err != nil {
			s.unseen(err)
		}
		return false
	}
	s.keep(m)
	if err := s.watch.start(s.pid); err != nil {
		s.unseen(err)
		return false
	}
	if err := send(s.control, wire.Frame(wire.TypeAck, nil)); err != nil {
		s.unseen(err)
		return false
	}
	return true
}

// unseen ends a run that cannot be looked at. One that was killed before we came
// to it has its cause: what is left to look at is what the kill has left (pids.max
// is 0, files of /proc are gone), and nothing is to vouch for.
func (s *session) unseen(err error) {
	if s.cause == "" {
		s.abort(err)
	}
}

// answer begins to answer for the program's filter when it has a listener: the
// second descriptor, there when it was asked for and only then.
func (s *session) answer(m *message) bool {
	if s.box.Denials == nil {
		return len(m.fds) == 1
	}
	if len(m.fds) != 2 {
		return false
	}
	listener := m.fds[1]
	m.fds = m.fds[:1]
	return s.box.Denials.Start(listener) == nil
}

// meetTime bounds the wait for init's word of a start that was seen already. With 64
// runs at once on two CPUs init has waited for more than a second for its turn.
const meetTime = 5 * time.Second

// meet waits for that word where the program passed a limit before it came: what
// is read back then is all that vouches for the program's controls, and once it
// is killed there is nothing to read. Init sends the word without waiting for
// the program, so this is the moment until a busy host lets it run. It says whether
// that took too long.
func (s *session) meet() (inVain bool) {
	late := time.NewTimer(meetTime)
	defer late.Stop()
	for s.started.IsZero() && s.failed == nil && s.cause == "" && s.events != nil && s.waits.release == nil {
		select {
		case m, ok := <-s.events:
			s.take(m, ok)
		case <-late.C:
			return true
		case <-s.reaped:
			return false
		}
	}
	return false
}
