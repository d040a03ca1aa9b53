package session

import (
	"context"
	"slices"
	"strconv"
	"sync"
)

// The bounds of a window. Nothing is kept for one, so the largest is only a number
// that no sum of can overflow; the smallest has room for any piece. Pieces are
// counted too: a program that writes byte by byte would else have its client keep
// a piece for each.
const (
	minWindow    = piece
	MaxWindow    = 1 << 30
	WindowPieces = 1024
)

// window is how much of a run's output may be on its way to the client or wait
// there: a client that has room for that always reads on, so that a run whose
// output nobody takes waits alone. A nil one is without end.
type window struct {
	turn   chan struct{}   // holds a token while a stream waits: they go in the order of asking
	given  chan struct{}   // has a token when something was given back
	lifted <-chan struct{} // closed when nothing can be given back any more

	mu   sync.Mutex // guards what follows
	room int64      // in bytes
	sent []int      // sizes of what is not given back, the oldest first
}

func newWindow(bytes int64, lifted <-chan struct{}) *window {
	if bytes == 0 {
		return nil
	}
	return &window{turn: make(chan struct{}, 1), given: make(chan struct{}, 1), lifted: lifted, room: bytes}
}

// take waits until a piece may be sent. The end of ctx lifts the window: a run that
// is cancelled ends at once, and has little left to say. So does the end of requests:
// no room would ever come, and what was accepted is finished.
func (w *window) take(ctx context.Context, n int) {
	if w == nil {
		return
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
	case <-w.lifted:
	}
	for must := false; !w.fits(n, must); {
		select {
		case <-w.given:
		case <-ctx.Done():
			must = true
		case <-w.lifted:
			must = true
		}
	}
}

// fits notes a piece as sent if there is room for it, or it must go all the same.
func (w *window) fits(n int, must bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !must && (int64(n) > w.room || len(w.sent) >= WindowPieces) {
		return false
	}
	w.room -= int64(n)
	w.sent = append(w.sent, n)
	return true
}

// note notes a piece that waits for nothing.
func (w *window) note(n int) {
	if w != nil {
		w.fits(n, true)
	}
}

// give takes back the oldest pieces. More than were sent is an error, and none then:
// it would let the window grow.
func (w *window) give(pieces int64) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pieces > int64(len(w.sent)) {
		return false
	}
	for _, n := range w.sent[:pieces] {
		w.room += int64(n)
	}
	w.sent = slices.Delete(w.sent, 0, int(pieces))
	select {
	case w.given <- struct{}{}:
	default:
	}
	return true
}

// more gives a run room for further output.
func (s *server) more(q *request) *problem {
	s.mu.Lock()
	r := s.runs[q.id]
	s.mu.Unlock()
	switch {
	case r == nil:
		return &problem{id: q.id, to: typeMore, code: UnknownID, what: "no run with this id waits or runs"}
	case r.credit == nil:
		return &problem{id: q.id, to: typeMore, code: NotSent, what: "the run has no window"}
	case !r.credit.give(q.pieces):
		return &problem{id: q.id, to: typeMore, code: NotSent, what: "not so many pieces are on their way as " + strconv.FormatInt(q.pieces, 10)}
	}
	return nil
}
