package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// clock is a moment that several goroutines write, by the monotonic clock: the
// host's may be set while a connection is open.
type clock struct{ since atomic.Int64 }

var epoch = time.Now()

func (c *clock) set(t time.Time) { c.since.Store(int64(t.Sub(epoch))) }
func (c *clock) get() time.Time  { return epoch.Add(time.Duration(c.since.Load())) }

// budget is a number of bytes that all connections of a run share.
type budget struct{ left atomic.Int64 }

func newBudget(n int64) *budget {
	b := &budget{}
	b.left.Store(n)
	return b
}

// take gives n, or what is left.
func (b *budget) take(n int) int {
	for {
		left := b.left.Load()
		got := min(int64(n), left)
		if b.left.CompareAndSwap(left, left-got) {
			return int(got)
		}
	}
}

// Pieces of a rate: what may come at once after a pause is a tenth of a second's
// worth, and so is the most that one connection takes before others have a turn.
const (
	burst    = time.Second / 10
	pieceMin = 1 << 10
)

// bucket bounds bytes in a second, of all connections together.
type bucket struct {
	rate int64 // 0: none
	mu   sync.Mutex
	due  time.Time // when all that was given is paid for
}

func newBucket(rate int64) *bucket { return &bucket{rate: rate} }

// piece is the most that a connection should ask for at once.
func (b *bucket) piece() int {
	if b.rate == 0 {
		return pieceMax
	}
	return int(min(max(b.rate/int64(time.Second/burst), pieceMin), pieceMax))
}

// reserve gives n bytes, and says how long to wait before they are sent.
func (b *bucket) reserve(n int, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-burst); b.due.Before(earliest) {
		b.due = earliest
	}
	b.due = b.due.Add(time.Duration(int64(n) * int64(time.Second) / b.rate))
	return max(b.due.Sub(now), 0)
}

// wait waits until n bytes may be sent. It is false when ctx ends before that.
func (b *bucket) wait(ctx context.Context, n int) bool {
	if b.rate == 0 {
		return true
	}
	d := b.reserve(n, time.Now())
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
