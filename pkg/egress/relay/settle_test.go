package relay

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// What a program sent before it ended reaches its host, whole and with its end:
// bytes that wait in the relay, and those of a connection that is not made yet.
func TestSettle(t *testing.T) {
	sent := bytes.Repeat([]byte("last words "), 5000)
	for _, c := range []struct {
		name string
		wait bool // for the lookup, until Settle has begun
	}{{"bytes that wait", false}, {"a connection to be made", true}} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan []byte, 1)
			read := make(chan struct{})
			server := listen(t).serve(func(c *net.TCPConn) {
				<-read
				b, err := io.ReadAll(c)
				if err != nil {
					t.Error(err)
				}
				got <- b
			})
			asked, answer := make(chan struct{}), make(chan struct{})
			cfg := Config{}
			if c.wait {
				cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) {
					close(asked)
					<-answer
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
				}
			}
			w := build(t, setup{server: server, cfg: cfg})
			client := w.dial()
			if _, err := client.Write(sent); err != nil {
				t.Fatal(err)
			}
			client.Close()
			if c.wait {
				<-asked
				close(answer)
			}
			w.relay.Settle(patience)
			w.relay.Close()
			close(read)
			if b := <-got; !bytes.Equal(b, sent) {
				t.Errorf("%d bytes arrived, want %d", len(b), len(sent))
			}
			// The server's end comes after the run's.
			if list := w.log.Network().Connections; len(list) != 1 || list[0].Verdict != result.RunEnded || list[0].BytesUp != int64(len(sent)) {
				t.Errorf("%+v", list)
			}
		})
	}
}

// A connection that both ends have closed is closed, and not ended with the run,
// however soon the run's end follows.
func TestSettleAfterBothEnds(t *testing.T) {
	server := listen(t).serve(func(c *net.TCPConn) {
		c.CloseWrite()
		io.Copy(io.Discard, c)
	})
	for range 100 {
		w := build(t, setup{server: server})
		client := w.dial()
		if _, err := io.ReadAll(client); err != nil {
			t.Fatal(err)
		}
		client.Write([]byte("x"))
		client.Close()
		w.relay.Settle(patience)
		w.relay.Close()
		same(t, w.log.Network().Connections[0], result.Connection{Host: host, Port: server.port, Address: "127.0.0.1", BytesUp: 1, Verdict: result.Closed})
	}
}

// The same where the host's end is the last: the program sees it, and ends.
func TestSettleAfterTheHostsEnd(t *testing.T) {
	server := listen(t).serve(func(c *net.TCPConn) { io.Copy(c, struct{ io.Reader }{c}) })
	for range 300 {
		w := build(t, setup{server: server})
		client := w.dial()
		client.Write([]byte("x"))
		client.CloseWrite()
		if _, err := io.ReadAll(client); err != nil {
			t.Fatal(err)
		}
		client.Close()
		w.relay.Settle(patience)
		w.relay.Close()
		same(t, w.log.Network().Connections[0], result.Connection{Host: host, Port: server.port, Address: "127.0.0.1", BytesUp: 1, BytesDown: 1, Verdict: result.Closed})
	}
}

// A connection that does not come to its end holds the run up for the time that
// was given, and no longer.
func TestSettleInVain(t *testing.T) {
	server := listen(t).serve(func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	w := build(t, setup{server: server})
	client := w.dial()
	defer client.Close()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.relay.Settle(50 * time.Millisecond)
	if d := time.Since(began); d < 50*time.Millisecond {
		t.Errorf("it waited %v for a program that has not ended", d)
	}
	w.relay.Close()
}

// TestLastBytes: a host that takes nothing is not waited for as long as the kernel
// likes. The kernel's own end of it is minutes away; here is what it is told.
func TestLastBytes(t *testing.T) {
	s := listen(t)
	c, err := net.Dial("tcp4", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tcp := c.(*net.TCPConn)
	tcp.SetLinger(0)
	lastBytes(tcp)
	raw, _ := tcp.SyscallConn()
	raw.Control(func(fd uintptr) {
		ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if ms != 30_000 || err != nil {
			t.Errorf("%d ms, %v", ms, err)
		}
		linger, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_LINGER)
		if linger != 0 || err != nil { // the first word of two: on or off
			t.Errorf("lingers: %d, %v", linger, err)
		}
	})
}
