// Package lookup asks the host's resolver for the addresses of listed names, for
// the name server inside and for each connection. What a program can make the
// host ask is bounded: how often, how many names at once, and for how long.
package lookup

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// The bounds. A positive answer outlives its own time to live at most by
// Positive; each connection's address is judged anew all the same.
const (
	Patience = 9 * time.Second  // for one lookup: the first of two name servers may be silent, for 5 as a rule
	Positive = 30 * time.Second // that a name has addresses
	Negative = 5 * time.Second  // that there is no such name
	Failed   = time.Second      // that the host's resolver gave no answer
	AtOnce   = 16               // lookups on the host at the same time
	MaxNames = 1024             // that are remembered
	MaxAddrs = 16               // of one name; more are not tried anyway

	// MaxLookups on the host in a run. A name that was asked before is asked again
	// when its answer is old, and which of the known names is asked, in which
	// order, says something to whoever answers for them: without an end a program
	// could send what it likes that way, past every limit of bytes.
	MaxLookups = 4096
)

// Errors of a lookup. All others mean that the host's resolver gave no answer.
var (
	ErrNoName = errors.New("no such name")
	ErrBusy   = errors.New("too many names are being looked up")
	ErrSpent  = errors.New("the lookups of the run are used up")
	ErrClosed = errors.New("the run has ended")
)

// Func looks one name up, which is canonical and absolute. It ends soon after
// its context.
type Func func(ctx context.Context, name string) ([]netip.Addr, error)

// Cache is a Func with a memory. Callers for the same name share one lookup,
// which goes on for the others when one of them leaves.
type Cache struct {
	ask     Func
	now     func() time.Time
	slots   chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	pending sync.WaitGroup

	mu     sync.Mutex
	known  map[string]*entry
	begun  int // lookups
	closed bool
}

// entry is a lookup, and its answer once done is closed.
type entry struct {
	done  chan struct{}
	addrs []netip.Addr
	err   error
	until time.Time // zero while it is not known
}

// New is an empty Cache in front of ask.
func New(ask Func) *Cache {
	ctx, cancel := context.WithCancel(context.Background())
	return &Cache{
		ask: ask, now: time.Now, slots: make(chan struct{}, AtOnce),
		ctx: ctx, cancel: cancel, known: map[string]*entry{},
	}
}

// Lookup is a Func.
func (c *Cache) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	e, err := c.entry(name)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
		return slices.Clone(e.addrs), e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends all lookups and waits for them.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.pending.Wait()
}

// entry is the one of that name, begun now if there is none that still holds.
func (c *Cache) entry(name string) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	spent := c.begun == MaxLookups
	// With no lookups left a name keeps its answer: where it leads is judged at
	// each connection.
	if e := c.known[name]; e != nil && (e.until.IsZero() || now.Before(e.until) || spent) {
		return e, nil
	}
	switch {
	case c.closed:
		return nil, ErrClosed
	case spent:
		return nil, ErrSpent
	}
	delete(c.known, name)
	if len(c.known) >= MaxNames && !c.forget(now) {
		return nil, ErrBusy
	}
	e := &entry{done: make(chan struct{})}
	c.known[name] = e
	c.begun++
	c.pending.Go(func() { c.run(e, name) })
	return e, nil
}

// forget makes room: all that no longer holds goes, else what holds shortest. It
// finds nothing where all are still being looked up.
func (c *Cache) forget(now time.Time) bool {
	var name string
	var first time.Time
	for n, e := range c.known {
		if e.until.IsZero() {
			continue
		}
		if !now.Before(e.until) {
			delete(c.known, n)
		} else if first.IsZero() || e.until.Before(first) {
			name, first = n, e.until
		}
	}
	if len(c.known) >= MaxNames && name != "" {
		delete(c.known, name)
	}
	return len(c.known) < MaxNames
}

func (c *Cache) run(e *entry, name string) {
	addrs, err := c.asked(name)
	hold := Positive
	switch {
	case err == nil && len(addrs) == 0:
		err, hold = ErrNoName, Negative
	case errors.Is(err, ErrNoName):
		hold = Negative
	case err != nil:
		hold = Failed
	}
	if err != nil {
		addrs = nil
	}
	c.mu.Lock()
	e.addrs, e.err, e.until = addrs[:min(len(addrs), MaxAddrs)], err, c.now().Add(hold)
	c.mu.Unlock()
	close(e.done)
}

// asked waits for its turn and asks the host.
func (c *Cache) asked(name string) ([]netip.Addr, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
	defer func() { <-c.slots }()
	ctx, cancel := context.WithTimeout(c.ctx, Patience)
	defer cancel()
	return c.ask(ctx, name)
}
