package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/sys"
	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

var past = time.Unix(1, 0)

func TestBytesPassBothWays(t *testing.T) {
	sent, answer := pattern(3<<20), pattern(5<<20)
	got := make(chan []byte, 1)
	s := listen(t).serve(func(c *net.TCPConn) {
		b, _ := io.ReadAll(c) // to the end of what the client sends: half-close
		got <- b
		c.Write(answer)
	})
	w := build(t, setup{server: s})
	c := w.dial()
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	c.CloseWrite()
	back, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(back, answer) {
		t.Errorf("%d bytes came back, %v", len(back), err)
	}
	if b := <-got; !bytes.Equal(b, sent) {
		t.Errorf("%d bytes arrived", len(b))
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 3 << 20, BytesDown: 5 << 20, Verdict: result.Closed})
}

// The server closes first, and the client's bytes still arrive.
func TestServerHalfCloses(t *testing.T) {
	got := make(chan string, 1)
	s := listen(t).serve(func(c *net.TCPConn) {
		c.Write([]byte("hello"))
		c.CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	w := build(t, setup{server: s})
	c := w.dial()
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	c.Write([]byte("bye"))
	c.Close()
	if b := <-got; b != "bye" {
		t.Errorf("%q arrived", b)
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 3, BytesDown: 5, Verdict: result.Closed})
}

func TestListedAddress(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s, cfg: Config{SNI: SNIAll}}) // for names alone
	w.toAddr(netip.AddrPortFrom(loopback, s.port))
	c := w.dial()
	c.Write([]byte("x"))
	c.CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	same(t, w.over(1)[0], result.Connection{Host: "127.0.0.1", Port: s.port, Address: "127.0.0.1", BytesUp: 1, BytesDown: 1, Verdict: result.Closed})
}

func TestWhatIsNotListed(t *testing.T) {
	s := listen(t)
	w := build(t, setup{server: s, rules: []string{"*.wild.example:8443", "192.0.2.0/24:8443"}})
	v4, v6, _ := w.table.For(host)
	other, _, _ := w.table.For("other.example")
	unknown := netip.MustParseAddr("198.19.255.1")
	for _, a := range []netip.AddrPort{
		netip.AddrPortFrom(v4, s.port+1), netip.AddrPortFrom(v6, 443), netip.AddrPortFrom(v6, 443),
		netip.AddrPortFrom(other, s.port), netip.AddrPortFrom(unknown, s.port),
		netip.AddrPortFrom(loopback, s.port+1), netip.MustParseAddrPort("127.0.0.2:8443"),
		netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("[::1]:8443"), {},
	} {
		w.toAddr(a)
		w.resets()
	}
	s.untouched(t)
	w.relay.Close()
	n := w.log.Network()
	const port, address, noName = "port of this name is not in the list", "address is not in the list", "address stands for no name"
	want := []result.RefusedHost{
		{Host: host, Port: s.port + 1, Reason: port, Count: 1}, {Host: host, Port: 443, Reason: port, Count: 2},
		{Host: "other.example", Port: s.port, Reason: port, Count: 1}, {Host: "198.19.255.1", Port: s.port, Reason: noName, Count: 1},
		{Host: "127.0.0.1", Port: s.port + 1, Reason: address, Count: 1}, {Host: "127.0.0.2", Port: 8443, Reason: address, Count: 1},
		{Host: "192.0.2.1", Port: 443, Reason: address, Count: 1}, {Host: "::1", Port: 8443, Reason: address, Count: 1},
		{Host: "invalid IP", Reason: address, Count: 1},
	}
	if len(n.Connections) != 0 || len(n.Refused) != len(want) {
		t.Fatalf("%+v", n)
	}
	for i, r := range n.Refused {
		if r != want[i] {
			t.Errorf("got %+v, want %+v", r, want[i])
		}
	}
}

func TestPrivateAddresses(t *testing.T) {
	for _, c := range []struct{ addrs, why string }{
		{"10.0.0.1", "10.0.0.1: "}, {"169.254.169.254", "169.254.169.254: "}, {"127.0.0.2", "127.0.0.2: "}, {"::1", "::1: "},
		{"::ffff:10.1.2.3", "10.1.2.3: "}, {"fd00:ec2::254", "fd00:ec2::254: "}, {"64:ff9b::a00:1", "64:ff9b::a00:1: "},
		{"198.18.0.9", "198.18.0.9: "}, {"0.0.0.0 10.0.0.1 ::", "0.0.0.0: "},
	} {
		s := listen(t)
		w := build(t, setup{server: s, cfg: Config{Lookup: func(context.Context, string) ([]netip.Addr, error) {
			var list []netip.Addr
			for _, a := range strings.Fields(c.addrs) {
				list = append(list, netip.MustParseAddr(a))
			}
			return list, nil
		}}})
		w.resets()
		got := w.end()
		if !strings.HasPrefix(got.Error, c.why) {
			t.Errorf("%s: %q", c.addrs, got.Error)
		}
		got.Error = ""
		same(t, got, result.Connection{Host: host, Port: s.port, Verdict: result.Private})
	}
}

// A name that was public when the program asked is looked up again by each
// connection, and of several addresses those that are private are left out.
func TestRebinding(t *testing.T) {
	s := listen(t).serve(echo)
	answers := make(chan []netip.Addr, 2)
	answers <- []netip.Addr{netip.MustParseAddr("10.0.0.1"), loopback}
	answers <- []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	w := build(t, setup{server: s, cfg: Config{Lookup: func(context.Context, string) ([]netip.Addr, error) { return <-answers, nil }}})
	c := w.dial()
	c.CloseWrite()
	if b, err := io.ReadAll(c); len(b) != 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	w.over(1)
	w.resets()
	list := w.over(2)
	same(t, list[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", Verdict: result.Closed})
	if list[1].Verdict != result.Private || list[1].Address != "" {
		t.Errorf("%+v", list[1])
	}
}

func TestUnreachable(t *testing.T) {
	for _, c := range []struct {
		what   string
		lookup func(context.Context, string) ([]netip.Addr, error)
		why    string
	}{
		{"fails", func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no answer") }, "no answer"},
		{"names a server", func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "server misbehaving", Server: "10.0.0.53:53", Name: host}
		}, "server misbehaving"},
		{"nothing", func(context.Context, string) ([]netip.Addr, error) { return nil, nil }, "the name has no address"},
		{"nobody listens", nil, "connection refused"},
	} {
		s, dialled := listen(t), ""
		if c.lookup == nil {
			s.Close()
			dialled = "127.0.0.1"
		}
		w := build(t, setup{server: s, cfg: Config{Lookup: c.lookup}})
		w.resets()
		if c.lookup != nil {
			s.untouched(t)
		}
		same(t, w.end(), result.Connection{Host: host, Port: s.port, Address: dialled, Verdict: result.Unreachable, Error: c.why})
	}
}

// The first address refuses, the second answers.
func TestNextAddress(t *testing.T) {
	s := listen(t).serve(echo)
	dead := netip.MustParseAddr("127.0.0.3")
	w := build(t, setup{server: s, rules: []string{"127.0.0.3:" + strings.Split(s.Addr().String(), ":")[1]},
		cfg: Config{Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{dead, loopback}, nil }}})
	c := w.dial()
	c.CloseWrite()
	if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", Verdict: result.Closed})
}

// The last check, on what goes to connect(2).
func TestControl(t *testing.T) {
	s := listen(t)
	w := build(t, setup{server: s})
	c := &conn{s: w.relay, dest: netip.AddrPortFrom(netip.MustParseAddr("198.18.1.0"), 8443)}
	for _, a := range []struct{ address, want string }{
		{"1.1.1.1:8443", ""}, {"[2606:4700::1]:8443", ""},
		{"1.1.1.1:443", "another port than the program's would be dialled"},
		{"127.0.0.1:8443", "127.0.0.1: "}, {"[fe80::1%lo]:8443", "fe80::1%lo: "}, {"[::ffff:10.0.0.1]:8443", "::ffff:10.0.0.1: "},
		{"name.example:8443", "ParseAddr"},
	} {
		err := c.control(a.address)
		if (err == nil) != (a.want == "") || err != nil && !strings.HasPrefix(err.Error(), a.want) {
			t.Errorf("%s: %v, want %q", a.address, err, a.want)
		}
	}
}

// An address that is public, and this host's: what listens on it may be open to
// the machine alone.
func TestOwnPublicAddress(t *testing.T) {
	testkit.Requires(t, "root")
	w := build(t, setup{server: listen(t)})
	c := &conn{s: w.relay, dest: netip.MustParseAddrPort("198.18.1.0:443")}
	public := netip.MustParseAddr("192.88.98.1")
	if why := c.judge(public); why != "" {
		t.Errorf("an address of another host: %q", why)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := ownAddress(public)
		if why := c.judge(public); err == nil && why != "an address of this host" {
			err = fmt.Errorf("an address of this host: %q", why)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// ownAddress gives the thread a network namespace with a on its loopback.
func ownAddress(a netip.Addr) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err := sys.LoopbackUp(); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := r.SetInet4Addr(a.AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)
}

func TestResets(t *testing.T) {
	t.Run("of the server", func(t *testing.T) {
		s := listen(t).serve(func(c *net.TCPConn) {
			io.ReadFull(c, make([]byte, 1))
			c.SetLinger(0)
		})
		w := build(t, setup{server: s})
		c := w.dial()
		c.Write([]byte("x"))
		isReset(t, c)
		same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 1, Verdict: result.Reset})
	})
	t.Run("of the program", func(t *testing.T) {
		seen := make(chan error, 1)
		s := listen(t).serve(func(c *net.TCPConn) {
			c.Write([]byte("x"))
			_, err := io.Copy(io.Discard, c)
			seen <- err
		})
		w := build(t, setup{server: s})
		c := w.dial()
		io.ReadFull(c, make([]byte, 1))
		reset(c)
		if err := <-seen; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v", err)
		}
		same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesDown: 1, Verdict: result.Reset})
	})
	// A server that has sent its end of file and is gone later, with nothing
	// written to it that would tell.
	t.Run("after an end of file", func(t *testing.T) {
		gone := make(chan struct{})
		s := listen(t).serve(func(c *net.TCPConn) {
			c.CloseWrite()
			<-gone
			c.SetLinger(0)
		})
		w := build(t, setup{server: s})
		c := w.dial()
		if b, err := io.ReadAll(c); len(b) != 0 || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
		close(gone)
		same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", Verdict: result.Reset})
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a write to who was reset: %v", err)
		}
	})
}

func TestResolverConnections(t *testing.T) {
	s := listen(t)
	w := build(t, setup{server: s, cfg: Config{Resolve: echoOnce}})
	for _, a := range []string{"127.0.0.1:53", "[::1]:53"} {
		w.toAddr(netip.MustParseAddrPort(a))
		c := w.dial()
		c.Write([]byte("q"))
		if b, err := io.ReadAll(c); string(b) != "q" || err != nil {
			t.Errorf("%s: %q, %v", a, b, err)
		}
	}
	w.toAddr(netip.MustParseAddrPort("127.0.0.2:53"))
	w.resets()
	w.relay.Close()
	if n := w.log.Network(); len(n.Connections) != 0 || len(n.Refused) != 1 {
		t.Errorf("%+v", n)
	}
}

func echoOnce(c net.Conn) {
	b := make([]byte, 1)
	io.ReadFull(c, b)
	c.Write(b)
	c.Close()
}

func TestManyAtOnce(t *testing.T) {
	s := listen(t).serve(echo)
	limits := DefaultLimits()
	limits.Open = 8
	w := build(t, setup{server: s, cfg: Config{Limits: limits}})
	data := pattern(100 << 10)
	var wg sync.WaitGroup
	for range 50 {
		c := w.dial()
		wg.Go(func() {
			go func() {
				c.Write(data)
				c.CloseWrite()
			}()
			if b, err := io.ReadAll(c); err != nil || !bytes.Equal(b, data) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	wg.Wait()
	w.over(50)
	n := w.log.Network()
	if n.BytesUp != 50*100<<10 || n.BytesDown != 50*100<<10 {
		t.Errorf("%d bytes up, %d down", n.BytesUp, n.BytesDown)
	}
	for _, c := range n.Connections {
		same(t, c, result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 100 << 10, BytesDown: 100 << 10, Verdict: result.Closed})
	}
}
