package relay

import (
	"io"
	"net"
	"testing"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// urgent sends the bytes of s, the '!' among them as urgent ones, and ends.
func urgent(t *testing.T, c *net.TCPConn, s string) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	for _, b := range []byte(s) {
		flags := 0
		if b == '!' {
			flags = unix.MSG_OOB
		}
		raw.Control(func(fd uintptr) { _, err = unix.SendmsgN(int(fd), []byte{b}, nil, nil, flags) })
		if err != nil {
			t.Errorf("%q of %q: %v", b, s, err)
		}
	}
	c.CloseWrite()
}

// TestUrgentData: an urgent byte is a byte as all others, both ways. In front of
// one a splice says that there is nothing, or the end of file.
func TestUrgentData(t *testing.T) {
	for _, sent := range []string{"!", "ab!", "!ab", "ab!cd", "!!", "a!b!c!d", "ab!cd!"} {
		got := make(chan string, 1)
		s := listen(t).serve(func(c *net.TCPConn) {
			b, _ := io.ReadAll(c)
			got <- string(b)
			urgent(t, c, sent)
		})
		w := build(t, setup{server: s})
		c := w.dial()
		urgent(t, c, sent)
		back, err := io.ReadAll(c)
		if string(back) != sent || err != nil {
			t.Errorf("%q came back of %q, %v", back, sent, err)
			w.relay.Close() // the server may wait
		}
		if up := <-got; up != sent {
			t.Errorf("%q arrived of %q", up, sent)
		}
		n := int64(len(sent))
		same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: n, BytesDown: n, Verdict: result.Closed})
	}
}
