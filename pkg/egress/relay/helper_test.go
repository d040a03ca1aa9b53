package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/egress/record"
	"sandglass/pkg/result"
)

const host = "api.example.org"

// patience is for what comes at once where it is right.
const patience = 20 * time.Second

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// world is a relay whose inside is the host's loopback: clients connect to its
// listener, and to where is what the test says.
type world struct {
	t      testing.TB
	relay  *Server
	log    *record.Log
	table  *names.Table
	inside string                         // address of the listener
	to     atomic.Pointer[netip.AddrPort] // where the next clients connect to
}

// setup is what a test changes.
type setup struct {
	rules  []string // beside those that make host and server allowed
	server *server
	cfg    Config
}

// server is a host on loopback, with a port that nothing else has.
type server struct {
	net.Listener
	port uint16
}

func listen(t testing.TB) *server {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &server{l, l.Addr().(*net.TCPAddr).AddrPort().Port()}
}

// serve gives each connection to f and closes it then.
func (s *server) serve(f func(*net.TCPConn)) *server {
	go testkit.Serve(s, f)
	return s
}

// echo sends everything back, and ends when the client has ended.
func echo(c *net.TCPConn) { io.Copy(c, struct{ io.Reader }{c}) }

// untouched fails when somebody has connected.
func (s *server) untouched(t *testing.T) {
	t.Helper()
	s.Listener.(*net.TCPListener).SetDeadline(past)
	if c, err := s.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("somebody has connected to the server: %v, %v", c, err)
	}
}

// build begins a relay for host and the loopback address, at the server's port.
func build(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, log: &record.Log{}, table: names.New()}
	rules := append([]string{fmt.Sprintf("%s:%d", host, s.server.port), fmt.Sprintf("127.0.0.1:%d", s.server.port)}, s.rules...)
	list, err := hosts.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.cfg
	cfg.List, cfg.Table, cfg.Log = list, w.table, w.log
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits()
	}
	if cfg.Lookup == nil {
		cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{loopback}, nil }
	}
	cfg.local = func(*net.TCPConn) netip.AddrPort { return *w.to.Load() }
	plain := net.ListenConfig{} // as init's are: one of MPTCP has not all options
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.inside = l.Addr().String()
	w.toName(host, s.server.port)
	if w.relay, err = Start(cfg, []*net.TCPListener{l.(*net.TCPListener)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.relay.Close)
	return w
}

func (w *world) toName(name string, port uint16) {
	v4, _, ok := w.table.For(name)
	if !ok {
		w.t.Fatal("the table is full")
	}
	w.toAddr(netip.AddrPortFrom(v4, port))
}

func (w *world) toAddr(a netip.AddrPort) { w.to.Store(&a) }

func (w *world) dial() *net.TCPConn {
	w.t.Helper()
	c, err := net.Dial("tcp4", w.inside)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// resets connects and is reset, which may come before connect has returned.
func (w *world) resets() {
	w.t.Helper()
	c, err := net.Dial("tcp4", w.inside)
	if err != nil {
		if !errors.Is(err, syscall.ECONNRESET) {
			w.t.Errorf("connect: %v", err)
		}
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	isReset(w.t, c)
}

// end closes the relay and is the one connection that there was.
func (w *world) end() result.Connection {
	w.t.Helper()
	w.relay.Close()
	n := w.log.Network()
	if len(n.Connections) != 1 || len(n.Refused) != 0 {
		w.t.Fatalf("not one connection and nothing refused: %+v", n)
	}
	return n.Connections[0]
}

// over waits until n connections are in the log.
func (w *world) over(n int) []result.Connection {
	w.t.Helper()
	var list []result.Connection
	testkit.Eventually(w.t, strconv.Itoa(n)+" connections are over", func() bool {
		list = w.log.Network().Connections
		return len(list) >= n
	})
	return list
}

// isReset waits for the end of c and says whether it was a reset.
func isReset(t testing.TB, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, not with a reset", err)
	}
}

// same compares a connection but for how long it took.
func same(t testing.TB, got, want result.Connection) {
	t.Helper()
	if got.DurationMS < 0 {
		t.Errorf("it took %d ms", got.DurationMS)
	}
	got.DurationMS = 0
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// pattern are n bytes of which no two pieces are alike.
func pattern(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.Bytes()[:n]
}
