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
