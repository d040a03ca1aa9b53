package session

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"sandglass/internal/deliver"
)

// writer hands whole lines to the one reader, one after the other. There is no
// queue of lines: who has one waits for its turn, which comes in the order of
// asking, and each run asks with one line of each stream at a time. So a reader
// that is slow holds up the programs whose output it does not take, and a bounded
// amount of memory. Clocks and verdicts wait for nobody's turn.
type writer struct {
	out   io.Writer
	turn  chan struct{} // holds a token while somebody writes
	moved atomic.Int64  // when the reader last took something, in ns

	gone   chan struct{} // closed when out takes no more
	failed error         // why, set before
	once   sync.Once
}

// piece is how much is written at once: what the reader takes of it is seen.
const piece = 64 << 10

func newWriter(out io.Writer) *writer {
	w := &writer{out: out, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	w.touch()
	return w
}

// hold waits for a turn. Call release.
func (w *writer) hold() error {
	select {
	case w.turn <- struct{}{}:
	case <-w.gone:
		return w.failed
	}
	select {
	case <-w.gone:
		w.release()
		return w.failed
	default:
		w.touch()
		return nil
	}
}

func (w *writer) release() { <-w.turn }

// line writes one line.
func (w *writer) line(b []byte) error {
	if err := w.hold(); err != nil {
		return err
	}
	defer w.release()
	_, err := w.Write(b)
	return err
}

// Write is for who has the turn.
func (w *writer) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = deliver.Write(w.out, b[n:min(n+piece, len(b))])
		n += m
		w.touch()
	}
	if err != nil {
		w.fail(err)
	}
	return n, err
}

// fail ends all writing: after half of a line nothing would be understood.
func (w *writer) fail(err error) {
	w.once.Do(func() {
		w.failed = err
		close(w.gone)
	})
}

// stop has nothing more written. One who is stuck in a write is left behind.
func (w *writer) stop() {
	select {
	case w.turn <- struct{}{}:
		defer w.release()
	default:
	}
	w.fail(io.ErrClosedPipe)
}

// touch notes that something is to be written now.
func (w *writer) touch() { w.moved.Store(time.Now().UnixNano()) }

// idle is how long the reader has taken nothing.
func (w *writer) idle() time.Duration { return time.Since(time.Unix(0, w.moved.Load())) }
