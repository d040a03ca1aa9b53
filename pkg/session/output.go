package session

import (
	"io"
	"sync"

	"sandglass/pkg/result"
)

// output sends one stream of a run as it comes. A character that is cut in two by
// a read goes with the next piece, so that text stays text.
type output struct {
	run    *run
	stream string

	mu    sync.Mutex
	carry []byte
}

func (o *output) Write(b []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n < len(b) && err == nil {
		part := b[n:min(len(b), n+piece-len(o.carry))]
		if err = o.send(part); err == nil {
			n += len(part)
		}
	}
	return n, err
}

// send sends a part with what was carried, when there is room for both.
func (o *output) send(part []byte) error {
	data := append(o.carry, part...)
	cut := len(data) - result.Begun(data)
	o.carry = append([]byte(nil), data[cut:]...)
	if cut == 0 {
		return nil
	}
	o.run.credit.take(o.run.ctx, cut)
	return o.run.event(outputLine(o.run.id, o.stream, data[:cut]))
}

// flush sends what is left. A writer that was given up still waits for its turn:
// what it has is not in the result's count. The result waits for no room: three
// bytes at most.
func (o *output) flush() {
	if !o.mu.TryLock() {
		return
	}
	defer o.mu.Unlock()
	if len(o.carry) > 0 {
		o.run.credit.note(len(o.carry))
		o.run.event(outputLine(o.run.id, o.stream, o.carry))
		o.carry = nil
	}
}

// event writes a line of a run, unless its last one is out.
func (r *run) event(line []byte) error {
	w := r.server.w
	if err := w.hold(); err != nil {
		return io.ErrClosedPipe
	}
	defer w.release()
	if r.over {
		return io.ErrClosedPipe
	}
	if _, err := w.Write(line); err != nil {
		return io.ErrClosedPipe
	}
	return nil
}
