package session

import (
	"context"
	"slices"
	"strconv"

	"sandglass/pkg/policy"
)

// accept starts a run, has it wait for its turn, or says why not. The order of
// requests is the order of starts.
func (s *server) accept(r *run) *problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	no := func(code Code, what string) *problem {
		return &problem{id: r.id, to: typeRun, code: code, what: what}
	}
	switch {
	case s.closing:
		return no(Closing, "the session ends")
	case s.runs[r.id] != nil:
		return no(DuplicateID, "a run with this id is not answered yet")
	case s.held+r.size > MaxHeld:
		return no(Busy, "the requests that wait and run hold "+policy.FormatSize(MaxHeld))
	case s.running >= s.c.Running && int64(len(s.queue)) >= s.c.Queued:
		return no(Busy, strconv.FormatInt(s.running, 10)+" run and "+strconv.Itoa(len(s.queue))+" wait")
	}
	s.runs[r.id] = r
	s.held += r.size
	s.queue = append(s.queue, r)
	s.startNext()
	return nil
}

// startNext starts whom there is room for, until the session ends: close answers
// them then. It tells how many wait still. The lock is held.
func (s *server) startNext() {
	for s.ctx.Err() == nil && s.running < s.c.Running && len(s.queue) > 0 {
		r := s.queue[0]
		s.queue[0], s.queue = nil, s.queue[1:]
		s.running++
		r.ctx, r.stop = context.WithCancel(s.ctx)
		s.boxes++
		go r.perform()
	}
	s.tellWaiting()
}

// done gives a run's place to the next. Its last bytes are still to be written:
// answered.
func (s *server) done(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.ending++
	s.forget(r)
	s.startNext()
}

// tellWaiting tells whom it concerns how many wait. The lock is held.
func (s *server) tellWaiting() {
	if s.c.Waiting != nil {
		s.c.Waiting(len(s.queue))
	}
}

func (s *server) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending--
	s.notify()
}

// unboxed notes that the sandbox of a run is gone. Its reply comes now.
func (s *server) unboxed() {
	s.w.touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boxes--
	s.notify()
}

// left is how many runs have no reply yet, and how many of them a sandbox.
func (s *server) left() (runs, boxes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs) + s.ending + s.farewell, s.boxes
}

func (s *server) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// forget lets go of a run. The lock is held.
func (s *server) forget(r *run) {
	delete(s.runs, r.id)
	s.held -= r.size
}

// cancel ends a run, or takes it out of the queue.
func (s *server) cancel(id string) *problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	switch {
	case r == nil:
		return &problem{id: id, to: typeCancel, code: UnknownID, what: "no run with this id waits or runs"}
	case r.stop != nil:
		r.stop()
		return nil
	}
	i := slices.Index(s.queue, r)
	s.queue = slices.Delete(s.queue, i, i+1)
	s.forget(r)
	s.tellWaiting()
	return &problem{id: id, to: typeRun, code: Canceled, what: "cancelled before it was started"}
}

// close ends the session: those that run are cancelled by their context, those
// that wait are answered.
func (s *server) close() {
	s.mu.Lock()
	s.closing = true
	queue := s.queue
	s.queue = nil
	for _, r := range queue {
		s.forget(r)
	}
	s.farewell = len(queue)
	s.mu.Unlock()
	for _, r := range queue {
		s.reply(&problem{id: r.id, to: typeRun, code: Closing, what: "the session ends"})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.farewell = 0
	s.notify()
}
