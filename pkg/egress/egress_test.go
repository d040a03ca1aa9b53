package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/lookup"
	"sandglass/pkg/result"
)

const host = "api.example.org"

func list(t *testing.T, rules ...string) *hosts.List {
	t.Helper()
	l, err := hosts.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// onlyHost knows one name.
func onlyHost(_ context.Context, name string) ([]netip.Addr, error) {
	if name != host {
		return nil, lookup.ErrNoName
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
}

// echoServer is a host outside, on the host's loopback.
func echoServer(t *testing.T) (port string, l net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go testkit.Serve(l, func(c *net.TCPConn) { io.Copy(c, struct{ io.Reader }{c}) })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, l
}

// program is what runs inside, as far as the network goes.
type program struct {
	*namespace
	t *testing.T
}

func (p *program) lookup(network, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return p.dial(network, "127.0.0.1:53")
	}}
	return r.LookupNetIP(context.Background(), "ip4", name)
}

// say sends a line and is what came back.
func (p *program) say(address, line string) (string, error) {
	c, err := p.dial("tcp4", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, line); err != nil {
		return "", err
	}
	c.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(c)
	return string(b), err
}

func (p *program) fails(want error, address string) {
	p.t.Helper()
	if got, err := p.say(address, "x"); !errors.Is(err, want) {
		p.t.Errorf("%s: %q, %v, want %v", address, got, err, want)
	}
}

func TestFromInside(t *testing.T) {
	testkit.NothingLeft(t, func() { fromInside(t) })
}

func fromInside(t *testing.T) {
	ns := newNamespace(t)
	defer ns.close()
	port, outside := echoServer(t)
	defer outside.Close()
	s, err := Start(Config{
		List: list(t, host+":"+port, "gone.example:"+port, "*.wild.example:1234", "127.0.0.1:"+port), Limits: DefaultLimits(), Lookup: onlyHost,
	}, ns.sockets(t, port, "1234"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := &program{ns, t}
	mine := netip.MustParseAddr("198.18.1.0")
	for _, network := range []string{"udp4", "tcp4"} {
		addrs, err := p.lookup(network, host)
		if err != nil || len(addrs) != 1 || !netip.MustParsePrefix("198.18.0.0/15").Contains(addrs[0].Unmap()) {
			t.Fatalf("over %s: %v, %v", network, addrs, err)
		}
		mine = addrs[0].Unmap()
	}
	for _, name := range []string{"other.example", "gone.example"} {
		var dns *net.DNSError
		if addrs, err := p.lookup("udp4", name); !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("%s: %v, %v", name, addrs, err)
		}
	}
	for _, address := range []string{mine.String() + ":" + port, "127.0.0.1:" + port} {
		if got, err := p.say(address, "hello"); got != "hello" || err != nil {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
	p.fails(syscall.ECONNRESET, mine.String()+":1234")
	p.fails(syscall.ECONNRESET, "198.19.7.7:"+port)
	p.fails(syscall.ECONNRESET, "127.0.0.2:"+port)
	p.fails(syscall.ECONNREFUSED, mine.String()+":80")
	p.fails(syscall.ENETUNREACH, "192.0.2.1:"+port)
	testkit.Eventually(t, "both connections are over", func() bool { return len(s.log.Network().Connections) == 2 })
	checkNetwork(t, s.Close(), port)
	p.fails(syscall.ECONNREFUSED, mine.String()+":"+port)
}

func checkNetwork(t *testing.T, n *result.Network, port string) {
	t.Helper()
	var number uint16
	fmt.Sscan(port, &number)
	if len(n.Connections) != 2 || n.BytesUp != 10 || n.BytesDown != 10 {
		t.Errorf("%+v", n)
	}
	for i, c := range n.Connections {
		want := result.Connection{Host: []string{host, "127.0.0.1"}[i], Port: number, Address: "127.0.0.1", BytesUp: 5, BytesDown: 5, DurationMS: c.DurationMS, Verdict: result.Closed}
		if c != want {
			t.Errorf("got  %+v\nwant %+v", c, want)
		}
	}
	var refused []string
	for _, r := range n.Refused {
		refused = append(refused, fmt.Sprintf("%s:%d %s", r.Host, r.Port, r.Reason))
	}
	want := []string{
		"other.example:0 not in the list", host + ":1234 port of this name is not in the list",
		"198.19.7.7:" + port + " address stands for no name", "127.0.0.2:" + port + " address is not in the list",
	}
	if !slices.Equal(refused, want) {
		t.Errorf("refused: %q\nwant %q", refused, want)
	}
}

// A run that ends in the middle of a lookup does not wait for it.
func TestCloseDuringALookup(t *testing.T) {
	testkit.NothingLeft(t, func() {
		ns := newNamespace(t)
		defer ns.close()
		asked := make(chan struct{})
		s, err := Start(Config{List: list(t, "slow.example:1234"), Limits: DefaultLimits(), Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		}}, ns.sockets(t, "1234"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := ns.dial("udp4", "127.0.0.1:53")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(querySlow)
		<-asked
		if n := s.Close(); len(n.Connections) != 0 || len(n.Refused) != 0 {
			t.Errorf("%+v", n)
		}
		s.Close()
	})
}

// querySlow asks for the address of slow.example.
var querySlow = []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04slow\x07example\x00\x00\x01\x00\x01")

func TestStartRefuses(t *testing.T) {
	none := DefaultLimits()
	none.Total = 0
	good := list(t, host)
	for _, c := range []struct {
		what string
		cfg  Config
		make func(s *Sockets)
		want string
	}{
		{"no list", Config{Limits: DefaultLimits()}, nil, "the list of hosts is empty"},
		{"an empty list", Config{List: &hosts.List{}, Limits: DefaultLimits()}, nil, "the list of hosts is empty"},
		{"no limits", Config{List: good}, nil, "a limit of the relay is not positive"},
		{"a limit of 0", Config{List: good, Limits: none}, nil, "a limit of the relay is not positive"},
		{"no socket for the resolver", Config{List: good, Limits: DefaultLimits()}, func(s *Sockets) {
			s.Packet.Close()
			s.Packet = nil
		}, "there is no socket for the resolver"},
		{"a listener that is none", Config{List: good, Limits: DefaultLimits()}, func(s *Sockets) {
			s.Listeners = append(s.Listeners, unixFile(t))
		}, "a listener of the sandbox is not one of TCP"},
	} {
		t.Run(c.what, func(t *testing.T) {
			testkit.NothingLeft(t, func() {
				var s Sockets
				for range 2 {
					f, err := tcpFile("127.0.0.1:0")
					if err != nil {
						t.Fatal(err)
					}
					s.Listeners = append(s.Listeners, f)
				}
				var err error
				if s.Packet, err = udpFile("127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
				if c.make != nil {
					c.make(&s)
				}
				if _, err := Start(c.cfg, s); err == nil || err.Error() != c.want {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

func unixFile(t *testing.T) *os.File {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: t.TempDir() + "/s", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}
