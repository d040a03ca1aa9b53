package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// stage is a point at which the run can end: reach brings a connection there.
type stage struct {
	name    string
	cfg     Config
	verdict result.Verdict // "": no connection in the log
	reach   func(t *testing.T, p *place)
}

// place is what a stage is reached in.
type place struct {
	*world
	server *server
	client *net.TCPConn
	second *net.TCPConn      // of the program's, nil: none
	held   chan *net.TCPConn // the server's connections, which it keeps
	asked  chan struct{}     // a lookup has begun
}

func (p *place) exchange(t *testing.T) *net.TCPConn {
	t.Helper()
	held := <-p.held
	held.Write([]byte("x"))
	if _, err := io.ReadFull(p.client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return held
}

// fill writes until nothing goes in any more.
func fill(t *testing.T, c *net.TCPConn) {
	t.Helper()
	b := make([]byte, 1<<20)
	for {
		c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := c.Write(b)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func stages() []stage {
	return []stage{
		{"no hello", Config{SNI: SNIAll}, result.RunEnded, func(t *testing.T, p *place) {
			p.client.Write([]byte{22})
			testkit.Eventually(t, "the connection is taken", func() bool { return p.open() == 1 })
		}},
		{"a lookup without an answer", Config{}, result.RunEnded, func(t *testing.T, p *place) { <-p.asked }},
		{"a connect without an answer", Config{}, result.RunEnded, func(t *testing.T, p *place) {
			testkit.Eventually(t, "the relay connects", func() bool { return connecting(t, 1, p.server.port) })
		}},
		{"idle", Config{}, result.RunEnded, func(t *testing.T, p *place) { p.exchange(t) }},
		{"the program has ended", Config{}, result.RunEnded, func(t *testing.T, p *place) {
			held := p.exchange(t)
			p.client.CloseWrite()
			io.Copy(io.Discard, held)
		}},
		{"the server has ended", Config{}, result.RunEnded, func(t *testing.T, p *place) {
			p.exchange(t).CloseWrite()
			io.Copy(io.Discard, p.client)
		}},
		{"a server that reads nothing", Config{}, result.RunEnded, func(t *testing.T, p *place) {
			p.exchange(t)
			fill(t, p.client)
		}},
		{"a program that reads nothing", Config{}, result.RunEnded, func(t *testing.T, p *place) { fill(t, p.exchange(t)) }},
		{"neither reads", Config{}, result.RunEnded, func(t *testing.T, p *place) {
			held := p.exchange(t)
			fill(t, p.client)
			fill(t, held)
		}},
		{"waiting for the rate", limited(func(l *Limits) { l.Rate = 1 }), result.RunEnded, func(t *testing.T, p *place) {
			p.client.Write(make([]byte, 1<<16))
			testkit.Eventually(t, "bytes wait", func() bool {
				p.relay.rate.mu.Lock()
				defer p.relay.rate.mu.Unlock()
				return time.Until(p.relay.rate.due) > time.Minute
			})
		}},
		{"waiting for a slot", limited(func(l *Limits) { l.Open = 1 }), result.RunEnded, func(t *testing.T, p *place) {
			p.exchange(t)
			p.second = p.dial()
			testkit.Eventually(t, "the second is accepted", func() bool {
				p.relay.mu.Lock()
				defer p.relay.mu.Unlock()
				return p.relay.total == 2
			})
		}},
		{"at the resolver", Config{Resolve: func(c net.Conn) { io.Copy(io.Discard, c) }}, "", func(t *testing.T, p *place) {
			testkit.Eventually(t, "the connection is taken", func() bool { return p.open() == 1 })
		}},
	}
}

func (w *world) open() int {
	w.relay.mu.Lock()
	defer w.relay.mu.Unlock()
	return len(w.relay.conns)
}

// connecting says whether somebody waits for an answer of 127.0.0.last (SYN_SENT).
func connecting(t *testing.T, last byte, port uint16) bool {
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), fmt.Sprintf(" %02X00007F:%04X 02 ", last, port))
}

// full is a server at 127.0.0.last whose backlog is full: the kernel answers no
// connect.
func full(t *testing.T, last byte) (s *server, done func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, last}})
	}
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	s = &server{port: uint16(name.(*unix.SockaddrInet4).Port)}
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.%d:%d", last, s.port))
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		c.Close()
		unix.Close(fd)
	}
}

// Whenever the run ends, it ends at once, and nothing is left of it.
func TestCloseInEachStage(t *testing.T) {
	for _, st := range stages() {
		t.Run(st.name, func(t *testing.T) {
			testkit.NothingLeft(t, func() { closeAt(t, st) })
		})
	}
}

func closeAt(t *testing.T, st stage) {
	t.Helper()
	p := &place{held: make(chan *net.TCPConn, 2), asked: make(chan struct{}, 2)}
	if st.name == "a connect without an answer" {
		var done func()
		p.server, done = full(t, 1)
		defer done()
	} else {
		// The server's connections are closed by the test, when it is over.
		release := make(chan struct{})
		defer close(release)
		p.server = listen(t).serve(func(c *net.TCPConn) {
			p.held <- c
			<-release
		})
		defer p.server.Close()
	}
	if st.name == "a lookup without an answer" {
		st.cfg.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			p.asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	p.world = build(t, setup{server: p.server, cfg: st.cfg})
	if st.cfg.Resolve != nil {
		p.toAddr(netip.MustParseAddrPort("127.0.0.1:53"))
	}
	p.client = p.dial()
	defer func() {
		p.client.Close()
		if p.second != nil {
			p.second.Close()
		}
	}()
	st.reach(t, p)
	p.relay.Close()
	p.relay.Close() // again is no harm
	list := p.log.Network().Connections
	switch {
	case st.verdict == "" && len(list) != 0, st.verdict != "" && len(list) == 0:
		t.Errorf("%+v", list)
	case st.verdict != "" && list[0].Verdict != st.verdict:
		t.Errorf("%+v, want the verdict %q", list[0], st.verdict)
	}
	p.client.SetReadDeadline(time.Now().Add(patience))
	if st.name == "the server has ended" || st.name == "a program that reads nothing" || st.name == "neither reads" {
		return // what the program has not read comes before the reset
	}
	isReset(t, p.client)
}

// Connections that are over leave nothing behind while the run goes on.
func TestNothingIsLeftOfConnections(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s})
	testkit.NothingLeft(t, func() {
		for i := range 20 {
			c := w.dial()
			c.Write([]byte("x"))
			io.ReadFull(c, make([]byte, 1))
			if i%2 == 0 {
				c.SetLinger(0) // the relay sees a reset
			}
			c.Close()
		}
		w.over(20)
	})
}
