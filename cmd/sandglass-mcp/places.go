package main

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

// places are the connections that there are at a time. Somebody who holds as many as
// there may be, and says nothing on them, shuts nobody out: a new one takes the place
// of the oldest that waits for a request, those first that never knew the token. None
// that has sent something which is not yet read gives way, or a flood of connections would
// shut out whoever is not looked at between two of them.
type places struct {
	net.Listener
	most int

	mu    sync.Mutex
	all   []*place      // in the order in which they began to wait
	freed chan struct{} // has a token when one has ended, waits again, or may be one that waits now
}

func newPlaces(l net.Listener, most int) *places {
	return &places{Listener: l, most: most, freed: make(chan struct{}, 1)}
}

// place is one connection.
type place struct {
	net.Conn
	of    *places
	known bool // a request with the token came over it
	busy  bool // one is being answered: that must not be cut off

	asks    bool // what it sends is no more than looked at yet
	reading bool // its server waits for more, or is about to see it
}

// Accept waits only while as many requests are being answered, or looked at, as there are
// places.
func (p *places) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := &place{Conn: c, of: p, asks: true}
	for !p.add(n) {
		<-p.freed
	}
	return n, nil
}

// add gives a connection its place, if need be that of another one.
func (p *places) add(n *place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) >= p.most {
		out := p.weakest()
		if out == nil {
			return false
		}
		p.remove(out)
		out.Conn.Close() // its server sees that, and closes it once more
	}
	p.all = append(p.all, n)
	return true
}

// weakest is who has to go for another, nil for nobody. The lock is held.
func (p *places) weakest() (out *place) {
	looks := false
	for _, c := range p.all {
		switch {
		case c.busy:
		case !c.known && !c.arrives():
			return c
		case !c.known:
			looks = true
		case out == nil && !c.arrives():
			out = c
		}
	}
	if looks {
		return nil // it is looked at in a moment, and goes before one that is known, or is known
	}
	return out
}

// remove takes a connection out, which may be gone already. The lock is held.
func (p *places) remove(c *place) (there bool) {
	for i, o := range p.all {
		if o == c {
			p.all = append(p.all[:i], p.all[i+1:]...)
			return true
		}
	}
	return false
}

func (p *places) notify() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

func (c *place) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	c.of.notify()
	return c.Conn.Close()
}

// arrives says whether there is something from a client that nobody has looked at, or is
// being looked at. Who sends a part of its headers and waits has no more than that. The
// lock is held.
func (c *place) arrives() bool { return c.asks && (!c.reading || unread(c.Conn)) }

// unread says whether bytes have come that nobody has read.
func unread(c net.Conn) (there bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		there = err == nil && n > 0
	})
	return there
}

// set changes what is known of a connection, and has a new one look again.
func (c *place) set(asks, reading bool) {
	c.of.mu.Lock()
	c.asks, c.reading = asks, reading
	c.of.mu.Unlock()
	c.of.notify()
}

func (c *place) Read(b []byte) (int, error) {
	c.set(true, true)
	defer c.set(true, false)
	return c.Conn.Read(b)
}

// Write is an answer, if only that the request is none.
func (c *place) Write(b []byte) (int, error) {
	c.set(false, false)
	return c.Conn.Write(b)
}

// placeKey is the context's of a request for its connection.
type placeKey struct{}

func withPlace(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, c)
}

// admit notes that a request with the token came over its connection.
func admit(r *http.Request) {
	if c, ok := r.Context().Value(placeKey{}).(*place); ok {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.known = true
	}
}

// occupy keeps the place of a request's connection until leave is called; then it
// waits, behind all others. A stream of events, of which there are none, keeps none.
func occupy(r *http.Request) (leave func()) {
	c, ok := r.Context().Value(placeKey{}).(*place)
	if !ok {
		return func() {}
	}
	set := func(busy bool) {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.busy = busy
		if !busy && c.of.remove(c) {
			c.of.all = append(c.of.all, c)
		}
	}
	set(r.Method != http.MethodGet)
	return func() {
		set(false)
		c.of.notify()
	}
}

// answerTime is how long a client may take for a part of its answer: who takes nothing
// would else keep its place for ever.
var answerTime = 60 * time.Second

// answerPart is how much of an answer has to be taken in that time.
const answerPart = 64 << 10

// timely bounds the time of each part of an answer. The whole, which the SDK writes at
// once, may take longer.
type timely struct{ http.ResponseWriter }

func (w timely) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, answerPart) {
		http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(answerTime))
		m, err := w.ResponseWriter.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (w timely) Unwrap() http.ResponseWriter { return w.ResponseWriter }
