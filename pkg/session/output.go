package session

import (
	"io"
	"sync"
	"unicode/utf8"
)

// output sends one stream of a run as it comes. A character that is cut in two by
// a read goes with the next piece, so that text stays text.
type output struct {
	run    *run
	stream string

	mu    sync.Mutex
	carry []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data := append(o.carry, b...)
	cut := len(data) - begun(data)
	o.carry = append([]byte(nil), data[cut:]...)
	if cut == 0 {
		return len(b), nil
	}
	if err := o.run.event(outputLine(o.run.id, o.stream, data[:cut])); err != nil {
		return 0, err
	}
	return len(b), nil
}

// flush sends what is left. A writer that was given up still waits for its turn:
// what it has is not in the result's count.
func (o *output) flush() {
	if !o.mu.TryLock() {
		return
	}
	defer o.mu.Unlock()
	if len(o.carry) > 0 {
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

// begun is how many bytes at the end are a character's that has more.
func begun(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
