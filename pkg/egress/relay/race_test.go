package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/egress/record"
	"sandglass/pkg/result"
)

var (
	errRefuses = errors.New("connection refused")
	errSilent  = errors.New("i/o timeout")
)

// far is a host of the test's clock: what each of its addresses does.
type far struct {
	does map[string]what
	left int // attempts after the first that may be made
	mu   sync.Mutex
	log  []string
	from time.Time
}

// what an address does: after a time it answers, or fails with err. Without a time
// it is silent. One that is deaf does not see that it has lost.
type what struct {
	after time.Duration
	err   error
	deaf  bool
}

func (f *far) more() bool {
	f.left--
	return f.left >= 0
}

func (f *far) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...)+fmt.Sprintf(" %v", time.Since(f.from)))
}

// dial is a connect: the connection is the address's name.
func (f *far) dial(ctx context.Context, a netip.Addr) (string, error) {
	w := f.does[a.String()]
	f.note("%v", a)
	var answer <-chan time.Time
	if w.after > 0 {
		answer = time.After(w.after)
	}
	done := ctx.Done()
	if w.deaf {
		done = nil
	}
	select {
	case <-answer:
		return a.String(), w.err
	case <-done:
		if ctx.Err() == context.DeadlineExceeded {
			f.note("%v given up", a)
			return "", errSilent
		}
		f.note("%v canceled", a)
		return "", ctx.Err()
	}
}

const ms = time.Millisecond

// The attempts of a host with several addresses, to the millisecond of the test's
// own clock.
func TestRace(t *testing.T) {
	for _, c := range []struct {
		name  string
		does  map[string]what // the addresses are its keys in their order
		limit time.Duration   // when the run ends, 0: later
		won   string
		err   error
		log   string
	}{
		{"one that answers", map[string]what{"1.0.0.1": {after: 9 * time.Second}}, 0, "1.0.0.1", nil, "1.0.0.1 0s"},
		{"the first is quick enough", map[string]what{"1.0.0.1": {after: 249 * ms}, "1.0.0.2": {after: 1}}, 0, "1.0.0.1", nil, "1.0.0.1 0s"},
		{"the first is silent", map[string]what{"1.0.0.1": {}, "1.0.0.2": {after: 10 * ms}}, 0, "1.0.0.2", nil,
			"1.0.0.1 0s, 1.0.0.2 250ms, 1.0.0.1 canceled 260ms"},
		{"the first is slow, and wins", map[string]what{"1.0.0.1": {after: 300 * ms}, "1.0.0.2": {}}, 0, "1.0.0.1", nil,
			"1.0.0.1 0s, 1.0.0.2 250ms, 1.0.0.2 canceled 300ms"},
		{"two refuse", map[string]what{"1.0.0.1": {after: 20 * ms, err: errRefuses}, "1.0.0.2": {after: 20 * ms, err: errRefuses}, "1.0.0.3": {after: 1 * ms}},
			0, "1.0.0.3", nil, "1.0.0.1 0s, 1.0.0.2 20ms, 1.0.0.3 40ms"},
		{"a refusal does not shorten the next delay", map[string]what{"1.0.0.1": {after: 200 * ms, err: errRefuses}, "1.0.0.2": {}, "1.0.0.3": {after: 1 * ms}},
			0, "1.0.0.3", nil, "1.0.0.1 0s, 1.0.0.2 200ms, 1.0.0.3 450ms, 1.0.0.2 canceled 451ms"},
		{"all are silent", map[string]what{"1.0.0.1": {}, "1.0.0.2": {}}, 0, "", errSilent,
			"1.0.0.1 0s, 1.0.0.2 250ms, 1.0.0.1 given up 10s, 1.0.0.2 given up 10s"},
		{"all refuse", map[string]what{"1.0.0.1": {after: 1 * ms, err: errRefuses}, "1.0.0.2": {after: 1 * ms, err: errSilent}}, 0, "", errRefuses,
			"1.0.0.1 0s, 1.0.0.2 1ms"},
		{"the run ends", map[string]what{"1.0.0.1": {}, "1.0.0.2": {}}, 100 * ms, "", context.Canceled, "1.0.0.1 0s, 1.0.0.1 canceled 100ms"},
		{"no more than four at a time", map[string]what{"1.0.0.1": {}, "1.0.0.2": {}, "1.0.0.3": {}, "1.0.0.4": {}, "1.0.0.5": {after: 1 * ms}}, 0, "1.0.0.5", nil,
			"1.0.0.1 0s, 1.0.0.2 250ms, 1.0.0.3 500ms, 1.0.0.4 750ms, 1.0.0.1 given up 5s, 1.0.0.5 5s, " +
				"1.0.0.2 canceled 5.001s, 1.0.0.3 canceled 5.001s, 1.0.0.4 canceled 5.001s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.limit > 0 {
					time.AfterFunc(c.limit, cancel)
				}
				f := &far{does: c.does, left: len(c.does), from: time.Now()}
				won, at, err := raceTo(ctx, f, t.Error)
				if want := c.won; won != want || err != c.err || want != "" && at.String() != want {
					t.Errorf("%q, %v, %v, want %q, %v", won, at, err, c.won, c.err)
				}
				if got := f.story(); got != c.log {
					t.Errorf("it did\n%s\nwant\n%s", got, c.log)
				}
			})
		})
	}
}

// raceTo is a race to all addresses of f.
func raceTo(ctx context.Context, f *far, drop func(...any)) (string, netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var addrs []netip.Addr
	for a := range f.does {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return race(ctx, addrs, f.more, f.dial, func(c string) { drop(c, " was dropped") })
}

// story is what was done. Those that end at one moment end in any order.
func (f *far) story() string {
	moment := func(s string) string { return s[strings.LastIndex(s, " "):] }
	for i := range f.log {
		for j := i; j > 0 && moment(f.log[j]) == moment(f.log[j-1]) && endings(f.log[j], f.log[j-1]) && f.log[j] < f.log[j-1]; j-- {
			f.log[j], f.log[j-1] = f.log[j-1], f.log[j]
		}
	}
	return strings.Join(f.log, ", ")
}

func endings(a, b string) bool {
	return strings.Count(a, " ") > 1 && strings.Count(b, " ") > 1
}

// One that connects when another has won is closed, and waited for.
func TestRaceDropsTheLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{does: map[string]what{"1.0.0.1": {after: 400 * ms, deaf: true}, "1.0.0.2": {after: 50 * ms}}, left: 1, from: time.Now()}
		var dropped []string
		won, at, err := raceTo(t.Context(), f, func(c ...any) { dropped = append(dropped, fmt.Sprint(c...)) })
		if won != "1.0.0.2" || at.String() != won || err != nil {
			t.Errorf("%q, %v, %v", won, at, err)
		}
		if want := []string{"1.0.0.1 was dropped"}; !slices.Equal(dropped, want) || time.Since(f.from) != 400*ms {
			t.Errorf("%q after %v, want %q", dropped, time.Since(f.from), want)
		}
	})
}

// As many addresses as a lookup gives, all of them silent: each is tried, in the
// time of the host.
func TestRaceTriesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{does: map[string]what{}, left: 15, from: time.Now()}
		for i := range 16 {
			f.does[fmt.Sprintf("1.0.0.%d", i+1)] = what{}
		}
		if _, _, err := raceTo(t.Context(), f, t.Error); err != errSilent || time.Since(f.from) != dialTime {
			t.Errorf("%v after %v", err, time.Since(f.from))
		}
		var begun []string
		for _, s := range f.log {
			if addr, at, _ := strings.Cut(s, " "); !strings.Contains(at, " ") {
				begun = append(begun, addr+" "+at)
			}
		}
		if len(begun) != 16 || begun[15] != "1.0.0.16 8.25s" {
			t.Errorf("%q", begun)
		}
	})
}

// The attempts that a run may make are used up, at a failure or at a delay: those
// that have begun go on, and there are no others.
func TestRaceWithoutMore(t *testing.T) {
	for _, c := range []struct {
		left int
		does map[string]what
		err  error
		log  string
	}{
		{0, map[string]what{"1.0.0.1": {after: ms, err: errRefuses}, "1.0.0.2": {after: ms}}, errRefuses, "1.0.0.1 0s"},
		{1, map[string]what{"1.0.0.1": {after: ms, err: errRefuses}, "1.0.0.2": {after: ms, err: errSilent}, "1.0.0.3": {after: ms}}, errRefuses, "1.0.0.1 0s, 1.0.0.2 1ms"},
		{0, map[string]what{"1.0.0.1": {}, "1.0.0.2": {after: ms}}, errSilent, "1.0.0.1 0s, 1.0.0.1 given up 10s"},
		{0, map[string]what{"1.0.0.1": {after: 300 * ms}, "1.0.0.2": {after: ms}}, nil, "1.0.0.1 0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{does: c.does, left: c.left, from: time.Now()}
			if _, _, err := raceTo(t.Context(), f, t.Error); err != c.err || f.story() != c.log {
				t.Errorf("%v after\n%s\nwant %v after\n%s", err, f.story(), c.err, c.log)
			}
		})
	}
}

func TestTakeTurns(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"1.0.0.1", "1.0.0.1"},
		{"1.0.0.1 1.0.0.2 1::1", "1.0.0.1 1::1 1.0.0.2"},
		{"1::1 1::2 1::3 1.0.0.1 1.0.0.2", "1::1 1.0.0.1 1::2 1.0.0.2 1::3"},
		{"1::1 1.0.0.1 1::2", "1::1 1.0.0.1 1::2"},
	} {
		var in []netip.Addr
		for _, a := range strings.Fields(c.in) {
			in = append(in, netip.MustParseAddr(a))
		}
		if got := strings.Trim(fmt.Sprint(takeTurns(in)), "[]"); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
}

// A server that does not answer costs nothing but the delay where another address
// of the host answers, and no socket is left of the attempt.
func TestSilentAddress(t *testing.T) {
	silent, done := full(t, 3)
	defer done()
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", silent.port))
	if err != nil {
		t.Fatal(err)
	}
	s := (&server{l, silent.port}).serve(echo)
	defer s.Close()
	dead := netip.MustParseAddr("127.0.0.3")
	w := build(t, setup{server: s, rules: []string{fmt.Sprintf("127.0.0.3:%d", s.port)},
		cfg: Config{Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{dead, loopback}, nil }}})
	c := w.dial()
	c.Write([]byte("x"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if connecting(t, 3, s.port) {
		t.Error("the attempt that has lost goes on")
	}
	c.CloseWrite()
	if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 1, BytesDown: 1, Verdict: result.Closed})
}

// A host that does not answer is not waited for again by the other address of its
// name. By the same address, a second later, and where it had answered, it is.
func TestSilenceIsRemembered(t *testing.T) {
	list, err := hosts.Parse([]string{host, "other.example.org", host + ":8443"})
	if err != nil {
		t.Fatal(err)
	}
	v4, v6 := names.V4.Addr(), names.V6.Addr()
	for _, c := range []struct {
		name  string
		first time.Duration // until the first fails, 0: it does not answer
		wait  time.Duration
		host  string
		to    netip.AddrPort
		asks  int // how often the host is dialled for the second connection
	}{
		{"by the other address", 0, 0, host, netip.AddrPortFrom(v4, 443), 0},
		{"a moment later", 0, silenceTime - 1, host, netip.AddrPortFrom(v4, 443), 0},
		{"by the same address", 0, 0, host, netip.AddrPortFrom(v6, 443), 1},
		{"later", 0, silenceTime, host, netip.AddrPortFrom(v4, 443), 1},
		{"at another port", 0, 0, host, netip.AddrPortFrom(v4, 8443), 1},
		{"another name", 0, 0, "other.example.org", netip.AddrPortFrom(v4, 443), 1},
		{"one that failed slowly", silenceTime, 0, host, netip.AddrPortFrom(v4, 443), 0},
		{"one that failed at once", silenceTime - 1, 0, host, netip.AddrPortFrom(v4, 443), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := &Server{ctx: t.Context(), cfg: Config{List: list, Log: &record.Log{}}}
				s.cfg.dial = func(ctx context.Context, _ netip.Addr) (*net.TCPConn, error) {
					asked++
					if c.first > 0 {
						<-time.After(c.first)
						return nil, errRefuses
					}
					<-ctx.Done()
					return nil, &net.OpError{Op: "dial", Net: "tcp4", Err: os.ErrDeadlineExceeded}
				}
				dial := func(name string, to netip.AddrPort) *conn {
					s.cfg.local = func(*net.TCPConn) netip.AddrPort { return to }
					k := s.newConn(nil)
					k.name = name
					k.dial([]netip.Addr{netip.MustParseAddr("1.1.1.1")})
					return k
				}
				a := dial(host, netip.AddrPortFrom(v6, 443))
				if asked != 1 || a.verdict != result.Unreachable {
					t.Fatalf("asked %d times, %q", asked, a.verdict)
				}
				<-time.After(c.wait)
				b := dial(c.host, c.to)
				if want := errRefuses.Error(); c.first == 0 && a.reason != "connection timed out" || c.first > 0 && a.reason != want {
					t.Errorf("the first: %q", a.reason)
				}
				if asked-1 != c.asks || b.verdict != result.Unreachable || b.reason != a.reason {
					t.Errorf("asked %d times, want %d: %q, %q", asked-1, c.asks, b.verdict, b.reason)
				}
			})
		})
	}
}

// What is remembered does not grow with the names that a program makes up.
func TestSilenceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silence
		for i := range 100 {
			begun := time.Now()
			<-time.After(silenceTime)
			s.add(destination{fmt.Sprint(i), 443}, true, begun, errSilent)
		}
		if len(s.known) != 1 {
			t.Errorf("%d are remembered, want the last", len(s.known))
		}
	})
}
