package relay

import (
	"io"
	"net"
	"testing"
)

// Each benchmark runs without the relay and with it, on the same machine in the
// same minute: the difference is what the relay costs.

func paths(b *testing.B, s *server, f func(b *testing.B, dial func() net.Conn)) {
	limits := DefaultLimits()
	limits.Up, limits.Down, limits.Total = 1<<60, 1<<60, 1<<40
	w := build(b, setup{server: s, cfg: Config{Limits: limits}})
	b.Run("direct", func(b *testing.B) { f(b, func() net.Conn { return connect(b, s.Addr().String()) }) })
	b.Run("relay", func(b *testing.B) { f(b, func() net.Conn { return connect(b, w.inside) }) })
}

func connect(b *testing.B, address string) net.Conn {
	c, err := net.Dial("tcp4", address)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkThroughput is one connection in one direction.
func BenchmarkThroughput(b *testing.B) {
	s := listen(b).serve(func(c *net.TCPConn) {
		buf := make([]byte, 1<<18)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
	paths(b, s, func(b *testing.B, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		piece := make([]byte, 1<<18)
		b.SetBytes(int64(len(piece)))
		for b.Loop() {
			if _, err := c.Write(piece); err != nil {
				b.Fatal(err)
			}
		}
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c) // until all has arrived
	})
}

// BenchmarkFirstByte is a connection, a byte there and a byte back.
func BenchmarkFirstByte(b *testing.B) {
	s := listen(b).serve(echo)
	paths(b, s, func(b *testing.B, dial func() net.Conn) {
		var buf [1]byte
		for b.Loop() {
			c := dial()
			c.Write(buf[:])
			if _, err := io.ReadFull(c, buf[:]); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
}

// BenchmarkRoundTrip is a byte there and back on a connection that is open.
func BenchmarkRoundTrip(b *testing.B) {
	s := listen(b).serve(echo)
	paths(b, s, func(b *testing.B, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		var buf [1]byte
		for b.Loop() {
			c.Write(buf[:])
			if _, err := io.ReadFull(c, buf[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
