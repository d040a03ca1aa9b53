package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/lookup"
	"sandglass/pkg/egress/names"
)

// host is the host's resolver: names that begin with "none" do not exist, those
// with "failing" have no answer, those with "slow" none before release is
// closed; all others have an address, which is a private one.
type host struct {
	mu      sync.Mutex
	asked   []string
	refused []string
	ended   []error       // of slow lookups that were not released
	slow    chan struct{} // takes one for each slow lookup that has begun
	release chan struct{}
}

func (h *host) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	h.mu.Lock()
	h.asked = append(h.asked, name)
	h.mu.Unlock()
	switch {
	case strings.HasPrefix(name, "none"):
		return nil, lookup.ErrNoName
	case strings.HasPrefix(name, "empty"):
		return nil, nil
	case strings.HasPrefix(name, "failing"):
		return nil, errors.New("server failure")
	case strings.HasPrefix(name, "slow"):
		h.slow <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ended = append(h.ended, ctx.Err())
			return nil, ctx.Err()
		}
	}
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

func (h *host) Refused(host string, port uint16, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = append(h.refused, fmt.Sprintf("%q %d %s", host, port, reason))
}

// told are the names that were looked up, and what was refused, since the last
// call.
func (h *host) told() (asked, refused []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked, refused = h.asked, h.refused
	h.asked, h.refused = nil, nil
	return asked, refused
}

func newServer(t testing.TB, values ...string) (*Server, *host) {
	t.Helper()
	l, err := hosts.Parse(values)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{slow: make(chan struct{}, 1000), release: make(chan struct{})}
	return &Server{List: l, Table: names.New(), Lookup: h.lookup, V6: true, Log: h}, h
}

// ask gives one message to the server, as its sockets do.
func (s *Server) ask(t testing.TB, msg []byte) []byte {
	t.Helper()
	reply, q := s.start(msg)
	if q != nil {
		reply = s.finish(t.Context(), q)
	}
	return reply
}

const id = 0xbeef

// ask is a query for a name with its last dot.
func ask(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// text is an answer in one line, checked as far as all answers are alike.
func text(t testing.TB, reply []byte) string {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatalf("%x: %v", reply, err)
	}
	if !m.Response || !m.RecursionAvailable || m.Authoritative || m.Truncated || m.ID != id || len(m.Authorities) != 0 || len(reply) > 512 {
		t.Fatalf("%#v in %d bytes", m.Header, len(reply))
	}
	s := strings.TrimPrefix(m.RCode.String(), "RCode")
	for _, q := range m.Questions {
		s += " " + q.Name.String()
	}
	for _, r := range m.Answers {
		if r.Header.TTL != 60 || r.Header.Class != dnsmessage.ClassINET {
			t.Fatalf("%#v", r.Header)
		}
		s += " " + r.Header.Name.String() + "="
		switch b := r.Body.(type) {
		case *dnsmessage.AResource:
			s += netip.AddrFrom4(b.A).String()
		case *dnsmessage.AAAAResource:
			s += netip.AddrFrom16(b.AAAA).String()
		case *dnsmessage.PTRResource:
			s += b.PTR.String()
		default:
			t.Fatalf("%#v", r)
		}
	}
	for _, r := range m.Additionals {
		if r.Header.Type != dnsmessage.TypeOPT || r.Header.Name.String() != "." {
			t.Fatalf("%#v", r.Header)
		}
		s += fmt.Sprintf(" OPT %d %d %v", r.Header.Class, r.Header.ExtendedRCode(m.RCode), r.Header.DNSSECAllowed())
	}
	return s
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// nothingLeft is to be called at the start; what it returns, at the end: as many
// goroutines and descriptors have to be there as before.
func nothingLeft(t *testing.T) func() {
	t.Helper()
	routines, files := runtime.NumGoroutine(), descriptors(t)
	return func() {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > routines || descriptors(t) > files; runtime.Gosched() {
			if time.Now().After(end) {
				buf := make([]byte, 1<<16)
				t.Fatalf("%d goroutines and %d descriptors, had %d and %d\n%s",
					runtime.NumGoroutine(), descriptors(t), routines, files, buf[:runtime.Stack(buf, true)])
			}
		}
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
