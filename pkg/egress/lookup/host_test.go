package lookup

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

type fakeResolver struct {
	asked []string
	addrs []netip.Addr
	err   error
}

func (f *fakeResolver) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	f.asked = append(f.asked, network+" "+host)
	return f.addrs, f.err
}

// TestAbsolute: no search domain is ever tried, and each address is told in its
// own family.
func TestAbsolute(t *testing.T) {
	f := &fakeResolver{addrs: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("2606:2800:220:1::1")}}
	h := NewHost()
	h.resolver, h.files = f, &fakeResolver{err: ErrNoName}
	addrs, err := h.Lookup(t.Context(), "gitea")
	want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2606:2800:220:1::1")}
	if err != nil || !slices.Equal(addrs, want) || !slices.Equal(f.asked, []string{"ip gitea."}) {
		t.Errorf("%v, %v, asked %q", addrs, err, f.asked)
	}
}

// nameServer is a name server of the test's own, which the host's resolver is
// made to ask. What it says depends on the name; of silent.example it says
// nothing.
func nameServer(t *testing.T) (h *Host, asked func() []string) {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var names []string
	var group sync.WaitGroup
	t.Cleanup(func() { pc.Close(); group.Wait() })
	group.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			mu.Lock()
			names = append(names, m.Questions[0].Name.String())
			mu.Unlock()
			if reply := said(m); reply != nil {
				pc.WriteTo(reply, from)
			}
		}
	})
	h = NewHost()
	h.dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", pc.LocalAddr().String())
	}
	return h, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(names) }
}

func said(m dnsmessage.Message) []byte {
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	switch q.Name.String() {
	case "a.example.":
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
		if q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: addr.As4()}}}
		}
	case "failing.example.":
		m.RCode = dnsmessage.RCodeServerFailure
	case "silent.example.":
		return nil
	default:
		m.RCode = dnsmessage.RCodeNameError
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

func TestHost(t *testing.T) {
	h, asked := nameServer(t)
	defer h.Close()
	if addrs, err := h.Lookup(t.Context(), "a.example"); err != nil || !slices.Equal(addrs, []netip.Addr{addr}) {
		t.Errorf("a.example is %v, %v", addrs, err)
	}
	if _, err := h.Lookup(t.Context(), "none.example"); err != ErrNoName {
		t.Errorf("none.example: %v, want ErrNoName", err)
	}
	if _, err := h.Lookup(t.Context(), "failing.example"); err == nil || errors.Is(err, ErrNoName) {
		t.Errorf("failing.example: %v", err)
	}
	names := asked()
	slices.Sort(names)
	if got := slices.Compact(names); !slices.Equal(got, []string{"a.example.", "failing.example.", "none.example."}) {
		t.Errorf("the name server was asked %q", got)
	}
}

// TestHostCloses: a name server that says nothing keeps neither a socket nor a
// goroutine of ours when the run is over.
func TestHostCloses(t *testing.T) {
	h, asked := nameServer(t)
	h.Lookup(t.Context(), "a.example") // what the runtime opens once is open now
	routines, files := runtime.NumGoroutine(), descriptors(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := h.Lookup(ctx, "silent.example")
		left <- err
	}()
	waitFor(t, "a question", func() bool { return slices.Contains(asked(), "silent.example.") })
	cancel()
	if err := <-left; err == nil {
		t.Error("a name that nobody answered for was found")
	}
	if descriptors(t) <= files {
		t.Error("no socket is open: the test shows nothing")
	}
	h.Close()
	if n := descriptors(t); n != files {
		t.Errorf("%d descriptors after Close, want %d", n, files)
	}
	goroutines(t, routines)
	if _, err := h.dial(t.Context(), "udp", "127.0.0.1:53"); err != net.ErrClosed {
		t.Errorf("a dial after Close: %v", err)
	}
}

// deaf is a connection that no deadline ends: a Read waits for Close, and takes
// its time then.
type deaf struct {
	net.Conn
	reading, closed chan struct{}
	read            atomic.Bool
}

func (d *deaf) SetDeadline(time.Time) error { return nil }
func (d *deaf) Write(b []byte) (int, error) { return len(b), nil }
func (d *deaf) Close() error                { close(d.closed); return nil }
func (d *deaf) Read([]byte) (int, error) {
	close(d.reading)
	<-d.closed
	for range 1000 {
		runtime.Gosched()
	}
	d.read.Store(true)
	return 0, net.ErrClosed
}

// TestCloseWaits: Close ends what reads for ever, and returns after it.
func TestCloseWaits(t *testing.T) {
	h := NewHost()
	d := &deaf{reading: make(chan struct{}), closed: make(chan struct{})}
	h.dialer = func(context.Context, string, string) (net.Conn, error) { return d, nil }
	c, err := h.dial(t.Context(), "tcp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // as the resolver does
		c.Read(nil)
		c.(*stream).done()
	}()
	<-d.reading
	h.Close()
	if !d.read.Load() {
		t.Error("Close did not wait for the reader")
	}
}

// TestHostsFile: the names of /etc/hosts are found, in the IPv4 form.
func TestHostsFile(t *testing.T) {
	h := NewHost()
	defer h.Close()
	h.dialer = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	text, err := os.ReadFile("/etc/hosts")
	if err != nil || !regexp.MustCompile(`(?m)^127\.0\.0\.1\s.*\blocalhost\b`).Match(text) {
		t.Skip("SKIP(want localhost in /etc/hosts, have none)")
	}
	addrs, err := h.Lookup(t.Context(), "localhost")
	if err != nil || !slices.Contains(addrs, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("localhost is %v, %v", addrs, err)
	}
	if addrs, err := h.Lookup(t.Context(), "not-in-any-file"); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("a name that is in no file: %v, %v", addrs, err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("no %s in 30 s", what)
		}
	}
}
