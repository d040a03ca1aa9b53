// Package relay is the way out of a sandbox with a list of hosts: it accepts the
// program's TCP connections on listeners of the sandbox's network namespace and
// joins each with one of the host's, when the list has its destination.
//
// The destination is the local address of the accepted socket, which the kernel
// sets and the program cannot forge. The relay reads nothing of what passes but
// the server name in a TLS hello; the rest goes through pipes in the kernel
// (splice), so no bug of ours can meet a program's bytes.
package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/egress/record"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// Config is what a relay needs. All of it is read only.
type Config struct {
	List  *hosts.List
	Table *names.Table
	// Lookup resolves a listed name on the host. It ends when its context does.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Resolve serves a connection to the resolver (127.0.0.1:53), nil: there is
	// none. It ends when the connection is closed.
	Resolve func(net.Conn)
	SNI     SNI
	Limits  Limits
	Log     *record.Log

	// Of tests, nil: the socket's own, and the network.
	local func(*net.TCPConn) netip.AddrPort
	dial  func(context.Context, netip.Addr) (*net.TCPConn, error)
}

// SNI says for which ports of names a connection must begin with a TLS hello
// that has the name of the list. For addresses of the list there is no name to
// compare with, and it does not apply.
type SNI int

// The zero value is the default.
const (
	SNI443 SNI = iota
	SNIOff
	SNIAll
)

// Limits of one run, all connections together. Each but Rate must be positive.
type Limits struct {
	Open  int           // connections at a time; later ones wait in the kernel's backlog
	Total int           // connections in all; later ones are refused by the kernel
	Up    int64         // bytes from the program; the next one cuts everything
	Down  int64         // bytes to the program
	Rate  int64         // bytes in a second, both ways together; 0: no limit
	Idle  time.Duration // of a connection, without a byte either way
}

// DefaultLimits are for a program that fetches what it needs: an index of
// packages and some of them.
func DefaultLimits() Limits {
	return Limits{Open: 64, Total: 4096, Up: 64 << 20, Down: 1 << 30, Idle: 5 * time.Minute}
}

// Check refuses what would be no limit by accident.
func (l *Limits) Check() error {
	if l.Open <= 0 || l.Total <= 0 || l.Up <= 0 || l.Down <= 0 || l.Idle <= 0 || l.Rate < 0 {
		return errors.New("a limit of the relay is not positive")
	}
	return nil
}

// smallBuffer is the size of a buffer, of which the kernel doubles what is asked
// for. Of the host's sockets the first few may have what the kernel finds right,
// megabytes where a server is far away; a program that opens all that it may gets
// small ones for the rest.
const (
	smallBuffer = 208 << 10
	large       = 8
)

// Server relays until Close.
type Server struct {
	cfg       Config
	up, down  *budget
	rate      *bucket
	slots     chan struct{} // one token for each open connection
	silent    silence
	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup // every goroutine
	acceptors sync.WaitGroup // those of the listeners
	mu        sync.Mutex
	listeners []*net.TCPListener
	conns     map[*conn]struct{}
	total     int
	over      result.Verdict // why no connection is taken any more, "": they are
}

// Start begins to accept. It takes the listeners over, and has closed them when
// it fails.
func Start(cfg Config, listeners []*net.TCPListener) (*Server, error) {
	err := cfg.Limits.Check()
	for _, l := range listeners {
		if err == nil {
			err = prepare(l)
		}
	}
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return nil, err
	}
	if cfg.local == nil {
		cfg.local = localAddr
	}
	s := &Server{
		cfg: cfg, up: newBudget(cfg.Limits.Up), down: newBudget(cfg.Limits.Down), rate: newBucket(cfg.Limits.Rate),
		slots: make(chan struct{}, cfg.Limits.Open), listeners: listeners, conns: map[*conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, l := range listeners {
		s.acceptors.Go(func() { s.accept(l) })
	}
	return s, nil
}

// Cut ends everything at once: every connection sees a reset.
func (s *Server) Cut() {
	s.end(result.RunEnded)
	s.cancel()
}

// Close is Cut, and waits until no goroutine and no descriptor is left. It may be
// called again.
func (s *Server) Close() {
	s.Cut()
	s.acceptors.Wait()
	s.wg.Wait()
}

// end cuts every connection, and takes no more: the kernel refuses those to come.
func (s *Server) end(v result.Verdict) {
	s.mu.Lock()
	if s.over == "" {
		s.over = v
	}
	s.stopListening()
	s.mu.Unlock()
	for _, c := range s.open() {
		c.cut(v, nil)
	}
}

// stopListening is called with the lock held.
func (s *Server) stopListening() {
	for _, l := range s.listeners {
		l.Close()
	}
	s.listeners = nil
}

// accept takes the connections of one listener. When all slots are taken it
// waits with one in its hands, and those behind it stay in the backlog.
func (s *Server) accept(l *net.TCPListener) {
	for {
		in, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			// The host is short of descriptors or memory. Trying again at once
			// would take a CPU for as long as it is.
			if !s.pause(50 * time.Millisecond) {
				return
			}
			continue
		}
		if !s.take(in) {
			return
		}
	}
}

// take serves a connection, unless no more are taken.
func (s *Server) take(in *net.TCPConn) bool {
	if !s.count() {
		reset(in)
		return false
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		reset(in)
		return false
	}
	c := s.newConn(in)
	over := s.add(c)
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		s.serve(c, over)
	})
	return true
}

// count takes one from the connections that a run may make, whatever becomes of
// it: one that is refused costs the host work too. Each address of a host that is
// tried is one: else a name with 16 of them would have the host knock at 16 times as
// many doors as the limit says.
func (s *Server) count() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.cfg.Limits.Total {
		return false
	}
	if s.total++; s.total == s.cfg.Limits.Total {
		s.stopListening()
	}
	return true
}

func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// add makes c one that end cuts, or says why it may not begin.
func (s *Server) add(c *conn) result.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == "" {
		s.conns[c] = struct{}{}
	}
	return s.over
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// prepare sets the options of a listener, which those that are accepted inherit.
func prepare(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(shrink(raw), inline(raw))
}

// shrink bounds what the kernel holds for a socket, for which no limit of the
// sandbox is charged: a program can fill all of them. Before listen or connect it
// bounds the window as well.
func shrink(raw syscall.RawConn) error {
	return errors.Join(set(raw, unix.SO_RCVBUF, smallBuffer), set(raw, unix.SO_SNDBUF, smallBuffer))
}

// inline leaves an urgent byte where it is in the stream. The kernel would take it
// out: the two ends would then differ in what was sent.
func inline(raw syscall.RawConn) error { return set(raw, unix.SO_OOBINLINE, 1) }

func set(raw syscall.RawConn, option, value int) error {
	var failed error
	err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, value) })
	return errors.Join(err, failed)
}

// localAddr is where the program connected to. A zone would be part of the
// address, and such an address is in no list.
func localAddr(in *net.TCPConn) netip.AddrPort {
	a, ok := in.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := a.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// lastTime is how long a host may take nothing of what the kernel still sends it
// when nobody has the socket any more. A host that never does would be sent the
// program's bytes for a quarter of an hour after the run.
const lastTime = 30 * time.Second

// lastBytes leaves it to the kernel to send what a socket holds when it is closed.
func lastBytes(c *net.TCPConn) {
	c.SetLinger(-1)
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lastTime.Milliseconds()))
		})
	}
}

// reset closes so that the other end sees a reset, and nothing stays behind in
// the kernel: no bytes to be sent, no TIME_WAIT.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}
