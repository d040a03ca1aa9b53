package lookup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var addr = netip.MustParseAddr("93.184.216.34")

// goroutines waits until there are as many as before.
func goroutines(t *testing.T, want int) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > want {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, want %d\n%s", runtime.NumGoroutine(), want, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

// clock is a time that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) forward(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

func withClock(ask Func) (*Cache, *clock) {
	k := &clock{now: time.Unix(1_000_000, 0)}
	c := New(ask)
	c.now = k.Now
	return c, k
}

// TestHolds: what is known is not asked again, for as long as its kind holds.
func TestHolds(t *testing.T) {
	other := errors.New("server failure")
	for _, c := range []struct {
		addrs []netip.Addr
		err   error
		want  error
		hold  time.Duration
	}{
		{[]netip.Addr{addr}, nil, nil, 30 * time.Second},
		{nil, ErrNoName, ErrNoName, 5 * time.Second},
		{nil, nil, ErrNoName, 5 * time.Second},
		{[]netip.Addr{addr}, other, other, time.Second},
	} {
		asked := 0
		cache, k := withClock(func(context.Context, string) ([]netip.Addr, error) { asked++; return c.addrs, c.err })
		look := func(total int) {
			t.Helper()
			addrs, err := cache.Lookup(t.Context(), "a.example")
			if err != c.want || err == nil && !slices.Equal(addrs, c.addrs) || err != nil && addrs != nil {
				t.Errorf("%v, %v, want %v, %v", addrs, err, c.addrs, c.want)
			}
			if asked != total {
				t.Errorf("asked %d times, want %d", asked, total)
			}
		}
		look(1)
		k.forward(c.hold - 1)
		look(1)
		k.forward(1)
		look(2)
		cache.Close()
	}
}

// TestShared: those who want one name wait for one lookup, and each has an
// answer of its own to change.
func TestShared(t *testing.T) {
	var asked atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	cache := New(func(context.Context, string) ([]netip.Addr, error) {
		asked.Add(1)
		close(begun)
		<-release
		return []netip.Addr{addr}, nil
	})
	defer cache.Close()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			addrs, err := cache.Lookup(t.Context(), "a.example")
			if err != nil || !slices.Equal(addrs, []netip.Addr{addr}) {
				t.Errorf("%v, %v", addrs, err)
				return
			}
			addrs[0] = netip.IPv4Unspecified()
		})
	}
	<-begun
	close(release)
	group.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestOneLeaves: a caller that gives up takes nothing from the others.
func TestOneLeaves(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	cache := New(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		close(begun)
		<-release
		return []netip.Addr{addr}, ctx.Err()
	})
	defer cache.Close()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := cache.Lookup(ctx, "a.example")
		left <- err
	}()
	<-begun
	cancel()
	if err := <-left; err != context.Canceled {
		t.Errorf("who left has %v", err)
	}
	close(release)
	if addrs, err := cache.Lookup(t.Context(), "a.example"); err != nil || len(addrs) != 1 {
		t.Errorf("who stayed has %v, %v", addrs, err)
	}
}

// TestAtOnce: no more than AtOnce lookups are on the host; the next one begins
// when one ends, and what is known is answered meanwhile.
func TestAtOnce(t *testing.T) {
	begun, release := make(chan string), make(chan struct{})
	var mu sync.Mutex
	running, most := 0, 0
	count := func(d int) { mu.Lock(); defer mu.Unlock(); running += d; most = max(most, running) }
	cache := New(func(_ context.Context, name string) ([]netip.Addr, error) {
		if name == "known.example" {
			return []netip.Addr{addr}, nil
		}
		count(1)
		defer count(-1)
		begun <- name
		<-release
		return []netip.Addr{addr}, nil
	})
	defer cache.Close()
	if _, err := cache.Lookup(t.Context(), "known.example"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range AtOnce + 4 {
		group.Go(func() {
			if _, err := cache.Lookup(t.Context(), fmt.Sprintf("h%d.example", i)); err != nil {
				t.Error(err)
			}
		})
	}
	for range AtOnce {
		<-begun
	}
	if n := len(cache.slots); n != AtOnce || cap(cache.slots) != AtOnce {
		t.Errorf("%d of %d slots are taken, want %d", n, cap(cache.slots), AtOnce)
	}
	if _, err := cache.Lookup(t.Context(), "known.example"); err != nil {
		t.Errorf("what is known is not answered: %v", err)
	}
	for range 4 {
		release <- struct{}{}
		<-begun
	}
	close(release)
	group.Wait()
	if most != AtOnce {
		t.Errorf("%d at once, want %d", most, AtOnce)
	}
}

// TestBounds: of the names that were asked the cache keeps MaxNames, of their
// addresses MaxAddrs.
func TestBounds(t *testing.T) {
	asked := map[string]int{}
	cache, k := withClock(func(_ context.Context, name string) ([]netip.Addr, error) {
		asked[name]++
		return slices.Repeat([]netip.Addr{addr}, 100), nil
	})
	defer cache.Close()
	name := func(i int) string { return fmt.Sprintf("h%d.example", i) }
	for i := range MaxNames + 1 {
		if addrs, err := cache.Lookup(t.Context(), name(i)); err != nil || len(addrs) != MaxAddrs {
			t.Fatalf("%d addresses, %v", len(addrs), err)
		}
		k.forward(time.Millisecond)
	}
	if len(cache.known) != MaxNames {
		t.Errorf("%d names are kept, want %d", len(cache.known), MaxNames)
	}
	for i, want := range map[int]int{0: 2, MaxNames: 1} { // the oldest went
		cache.Lookup(t.Context(), name(i))
		if asked[name(i)] != want {
			t.Errorf("%s was asked %d times, want %d", name(i), asked[name(i)], want)
		}
	}
	k.forward(Positive)
	cache.Lookup(t.Context(), "new.example")
	if len(cache.known) != 1 {
		t.Errorf("%d names are kept after their time", len(cache.known))
	}
}

// TestSpent: a run has MaxLookups, also of names that were asked before. Then a
// name keeps the answer it has, and no other is asked for.
func TestSpent(t *testing.T) {
	asked := 0
	cache, k := withClock(func(_ context.Context, name string) ([]netip.Addr, error) {
		asked++
		if name == "none.example" {
			return nil, ErrNoName
		}
		return []netip.Addr{addr}, nil
	})
	defer cache.Close()
	look := func(name string, want error, total int) {
		t.Helper()
		if addrs, err := cache.Lookup(t.Context(), name); err != want || err == nil && !slices.Equal(addrs, []netip.Addr{addr}) {
			t.Errorf("%s: %v, %v, want %v", name, addrs, err, want)
		}
		if asked != total {
			t.Fatalf("%s: asked %d times, want %d", name, asked, total)
		}
		k.forward(Positive)
	}
	look("none.example", ErrNoName, 1)
	for i := range MaxLookups - 1 {
		look("a.example", nil, i+2)
	}
	look("a.example", nil, MaxLookups)
	look("none.example", ErrNoName, MaxLookups)
	look("new.example", ErrSpent, MaxLookups)
}

// TestBusy: with all room taken by names that are being looked up, a new one is
// refused, and Close ends them all.
func TestBusy(t *testing.T) {
	before := runtime.NumGoroutine()
	var begun, ended atomic.Int32
	cache := New(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		begun.Add(1)
		<-ctx.Done()
		for range 1000 {
			runtime.Gosched()
		}
		ended.Add(1)
		return nil, ctx.Err()
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range MaxNames {
		if _, err := cache.Lookup(gone, fmt.Sprintf("h%d.example", i)); err != context.Canceled {
			t.Fatal(err)
		}
	}
	if _, err := cache.Lookup(t.Context(), "new.example"); err != ErrBusy {
		t.Errorf("%v, want ErrBusy", err)
	}
	cache.Close()
	if b, e := begun.Load(), ended.Load(); b != e {
		t.Errorf("%d lookups began and %d ended before Close did", b, e)
	}
	if _, err := cache.Lookup(t.Context(), "h0.example"); err != context.Canceled && err != ErrClosed {
		t.Errorf("after Close: %v", err)
	}
	if _, err := cache.Lookup(t.Context(), "new.example"); err != ErrClosed {
		t.Errorf("a new name after Close: %v", err)
	}
	goroutines(t, before)
}

// TestPatience: each lookup has to end within Patience.
func TestPatience(t *testing.T) {
	before := time.Now()
	var deadline time.Time
	cache := New(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		deadline, _ = ctx.Deadline()
		return nil, ErrNoName
	})
	defer cache.Close()
	cache.Lookup(t.Context(), "a.example")
	if deadline.Before(before.Add(Patience)) || deadline.After(time.Now().Add(Patience)) {
		t.Errorf("the deadline is %v after the start", deadline.Sub(before))
	}
}
