package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sandglass/pkg/egress/names"
	"sandglass/pkg/result"
)

// conn is one connection of the program's and, once dialled, the host's.
type conn struct {
	s      *Server
	inside *net.TCPConn
	name   string // from the table, "" for an address
	dest   netip.AddrPort
	begun  time.Time
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	outside *net.TCPConn
	dialled netip.Addr
	verdict result.Verdict // "" while it goes on
	reason  string
	timer   *time.Timer
	upEnded func() // closes sent

	up, down atomic.Int64  // bytes
	sent     chan struct{} // closed when all that the program sent has been passed on, or never will be
	allSent  atomic.Bool   // it has been
	ended    atomic.Int32  // directions
	last     clock         // when a byte passed
}

func (s *Server) newConn(in *net.TCPConn) *conn {
	c := &conn{s: s, inside: in, dest: s.cfg.local(in), begun: time.Now(), sent: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.upEnded = sync.OnceFunc(func() { close(c.sent) })
	return c
}

// serve takes one connection from its destination to its end. over says why it may
// not begin.
func (s *Server) serve(c *conn, over result.Verdict) {
	defer c.cancel()
	defer c.upEnded()
	if over != "" {
		c.cut(over, nil)
		return
	}
	defer s.remove(c)
	if isResolver(c.dest) && s.cfg.Resolve != nil {
		s.cfg.Resolve(c.inside)
		c.inside.Close()
		return
	}
	if why := c.refused(); why != "" {
		host := c.name
		if host == "" {
			host = c.dest.Addr().String()
		}
		s.cfg.Log.Refused(host, c.dest.Port(), why)
		reset(c.inside)
		return
	}
	c.relay()
	s.cfg.Log.Connection(c.begun, s.cfg.List.By(c.name, c.dest), c.result())
}

func isResolver(a netip.AddrPort) bool {
	return a.Port() == 53 && (a.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a.Addr() == netip.IPv6Loopback())
}

// refused says why the list does not have the destination. An address of our
// own range stands for a name, and for nothing when it was given to none.
func (c *conn) refused() string {
	addr, port := c.dest.Addr(), c.dest.Port()
	if !names.V4.Contains(addr) && !names.V6.Contains(addr) {
		if c.s.cfg.List.AllowsAddr(addr, port) {
			return ""
		}
		return "address is not in the list"
	}
	name, ok := c.s.cfg.Table.Name(addr)
	if !ok {
		return "address stands for no name"
	}
	c.name = name
	if c.s.cfg.List.AllowsName(name, port) {
		return ""
	}
	return "port of this name is not in the list"
}

// relay does the work. However it ends, both sockets are closed and the verdict
// is there.
func (c *conn) relay() {
	defer c.cut(result.Closed, nil)
	hello, ok := c.greeting()
	if !ok {
		return
	}
	addrs, ok := c.addresses()
	if !ok || !c.dial(addrs) {
		return
	}
	c.watchIdle()
	defer c.stopWatch()
	if len(hello) == 0 || c.send(hello) {
		c.join()
	}
}

// send passes on what was read for the check.
func (c *conn) send(b []byte) bool {
	n := c.s.up.take(len(b))
	if !c.s.rate.wait(c.ctx, n) {
		return false
	}
	m, err := c.outside.Write(b[:n])
	c.up.Add(int64(m))
	if err != nil {
		c.cut(result.Reset, err)
		return false
	}
	if n < len(b) {
		c.s.end(result.ByteLimit)
		return false
	}
	return true
}

// join passes bytes both ways until both ends have closed, or one has reset.
func (c *conn) join() {
	var wg sync.WaitGroup
	wg.Go(func() { c.oneWay(c.inside, c.outside, &c.up, c.s.up) })
	c.oneWay(c.outside, c.inside, &c.down, c.s.down)
	wg.Wait()
}

func (c *conn) oneWay(from, to *net.TCPConn, count *atomic.Int64, left *budget) {
	p, err := newPump(from, to)
	if err != nil {
		c.cut(result.Reset, err)
		return
	}
	err = p.run(c, count, left)
	p.close()
	if from == c.inside {
		c.allSent.Store(err == nil)
	}
	both := c.ended.Load() == 2
	switch {
	case errors.Is(err, errSpent):
		c.s.end(result.ByteLimit)
	case err != nil:
		c.cut(result.Reset, err)
	case both:
		c.cut(result.Closed, nil)
	}
	if from == c.inside {
		c.upEnded() // after the verdict: who waits for it ends the connections then
	}
	if err == nil && !both {
		p.awaitReset(c)
	}
}

// cut ends the connection with a verdict, which the first one gives. Unless both
// ends had closed, both see a reset: bytes are missing, and an end of file would
// say that they are not. One that the run's end cuts, and that had all of the
// program's bytes, is left to the kernel, which still sends them.
func (c *conn) cut(v result.Verdict, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict != "" {
		return
	}
	c.verdict, c.reason = v, reasonOf(err)
	c.cancel()
	for _, s := range []*net.TCPConn{c.inside, c.outside} {
		if s == nil {
			continue
		}
		switch whole := v == result.Closed || v == result.RunEnded && s == c.outside && c.allSent.Load(); {
		case !whole:
			s.SetLinger(0)
		case s == c.outside:
			lastBytes(s)
		}
		s.Close()
	}
}

// dialling notes where a packet of the host's goes, whatever becomes of it: who has
// a listed name chooses the address, and the result must say which it was.
func (c *conn) dialling(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialled = addr
}

// dialledTo takes the host's socket over, unless the connection is over by now.
func (c *conn) dialledTo(out *net.TCPConn, addr netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict != "" {
		reset(out)
		return false
	}
	// However the supervisor ends, killed too, the host sees a reset then, and the
	// kernel goes on with nothing.
	out.SetLinger(0)
	c.outside, c.dialled = out, addr
	return true
}

func (c *conn) result() result.Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := result.Connection{
		Host: c.name, Port: c.dest.Port(), BytesUp: c.up.Load(), BytesDown: c.down.Load(),
		DurationMS: time.Since(c.begun).Milliseconds(), Verdict: c.verdict, Error: c.reason,
	}
	if c.name == "" {
		r.Host = c.dest.Addr().String()
	}
	if c.dialled.IsValid() {
		r.Address = c.dialled.String()
	}
	return r
}

// reasonOf is an error in the kernel's words, without our addresses around it.
// That an end has reset is what the verdict says.
func reasonOf(err error) string {
	var errno syscall.Errno
	var network net.Error
	switch {
	case err == nil, errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ENOTCONN):
		return ""
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &network) && network.Timeout():
		return syscall.ETIMEDOUT.Error()
	}
	return err.Error()
}

// watchIdle cuts the connection when nothing passes for the limit. One timer for
// both directions, which is set again only when it fires: a deadline on each
// read would be two more system calls' worth of work for each piece.
func (c *conn) watchIdle() {
	c.last.set(time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(c.s.cfg.Limits.Idle, c.idle)
}

func (c *conn) idle() {
	left := c.s.cfg.Limits.Idle - time.Since(c.last.get())
	if left <= 0 {
		c.cut(result.Idle, nil)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict == "" {
		c.timer.Reset(left)
	}
}

func (c *conn) stopWatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
}
