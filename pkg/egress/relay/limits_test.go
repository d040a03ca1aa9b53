package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

func TestLimitsAreChecked(t *testing.T) {
	for i, change := range []func(*Limits){
		func(l *Limits) { l.Open = 0 }, func(l *Limits) { l.Total = 0 }, func(l *Limits) { l.Up = 0 }, func(l *Limits) { l.Down = -1 },
		func(l *Limits) { l.Idle = 0 }, func(l *Limits) { l.Rate = -1 }, func(l *Limits) { *l = Limits{} },
	} {
		l := DefaultLimits()
		if err := l.Check(); err != nil {
			t.Fatalf("the defaults: %v", err)
		}
		change(&l)
		s := listen(t)
		if _, err := Start(Config{Limits: l}, []*net.TCPListener{s.Listener.(*net.TCPListener)}); err == nil {
			t.Errorf("change %d is taken", i)
		}
		if _, err := s.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("change %d: the listener was not closed: %v", i, err)
		}
	}
}

// limited is the defaults with a change.
func limited(change func(*Limits)) Config {
	l := DefaultLimits()
	change(&l)
	return Config{Limits: l}
}

func TestIdle(t *testing.T) {
	s := listen(t).serve(func(c *net.TCPConn) {
		c.Write([]byte("x"))
		io.Copy(io.Discard, c)
	})
	// The server's byte has to come before that, on a busy host too.
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Idle = 2 * time.Second })})
	w.resets()
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesDown: 1, Verdict: result.Idle})
}

// A byte either way is activity: the timer that fires looks at when it was.
func TestActivityKeepsAConnection(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Idle = time.Hour })})
	client := w.dial()
	client.Write([]byte("x"))
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w.relay.mu.Lock()
	for c := range w.relay.conns {
		c.last.set(time.Now().Add(-time.Hour + time.Minute))
		c.idle()
	}
	w.relay.mu.Unlock()
	client.Write([]byte("y"))
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatalf("a connection with a minute left: %v", err)
	}
	var open *conn
	w.relay.mu.Lock()
	for c := range w.relay.conns {
		open = c
	}
	w.relay.mu.Unlock()
	open.last.set(time.Now().Add(-time.Hour))
	open.idle()
	isReset(t, client)
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 2, BytesDown: 2, Verdict: result.Idle})
}

// No byte more than the limit leaves, all connections together, and then all of
// them are cut and none is taken.
func TestBytesUp(t *testing.T) {
	const most = 300_000
	var mu sync.Mutex
	arrived := 0
	s := listen(t).serve(func(c *net.TCPConn) {
		c.Write([]byte("x"))
		n, _ := io.Copy(io.Discard, struct{ io.Reader }{c})
		mu.Lock()
		arrived += int(n)
		mu.Unlock()
	})
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Up = most })})
	idle, first, second := w.dial(), w.dial(), w.dial()
	for _, c := range []net.Conn{idle, first, second} {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	data := pattern(200_000)
	if _, err := first.Write(data); err != nil {
		t.Fatal(err)
	}
	first.CloseWrite()
	if _, err := io.ReadAll(first); err != nil {
		t.Fatalf("within the limit: %v", err)
	}
	w.over(1)
	second.Write(data)
	isReset(t, second)
	isReset(t, idle)
	w.over(3)
	n := w.log.Network()
	verdicts := map[result.Verdict]int{}
	for _, c := range n.Connections {
		verdicts[c.Verdict]++
	}
	if n.BytesUp != most || verdicts[result.Closed] != 1 || verdicts[result.ByteLimit] != 2 {
		t.Errorf("%d bytes up, %v", n.BytesUp, verdicts)
	}
	if _, err := net.Dial("tcp4", w.inside); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("one more connection: %v", err)
	}
	w.relay.Close()
	mu.Lock()
	defer mu.Unlock()
	if arrived > most {
		t.Errorf("%d bytes arrived, more than %d", arrived, most)
	}
}

func TestBytesDown(t *testing.T) {
	const most = 300_000
	s := listen(t).serve(func(c *net.TCPConn) {
		io.ReadFull(c, make([]byte, 1)) // or the reset could come before connect has returned
		c.Write(pattern(400_000))
	})
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Down = most })})
	c := w.dial()
	c.Write([]byte("x"))
	got, err := io.ReadAll(c)
	if !errors.Is(err, syscall.ECONNRESET) || len(got) > most {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 1, BytesDown: most, Verdict: result.ByteLimit})
}

// Exactly what is allowed is no breach.
func TestBytesExactly(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Up, l.Down = 100_000, 100_000 })})
	c := w.dial()
	go func() {
		c.Write(pattern(100_000))
		c.CloseWrite()
	}()
	if b, err := io.ReadAll(c); len(b) != 100_000 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 100_000, BytesDown: 100_000, Verdict: result.Closed})
}

// With two slots no more than two connections reach the server at a time, and
// each gets its turn.
func TestOpenConnections(t *testing.T) {
	var mu sync.Mutex
	open, most := 0, 0
	two := make(chan struct{})
	s := listen(t).serve(func(c *net.TCPConn) {
		mu.Lock()
		open++
		if most = max(most, open); open == 2 && most == 2 {
			select {
			case <-two:
			default:
				close(two)
			}
		}
		mu.Unlock()
		<-two // the first waits for the second
		io.Copy(io.Discard, struct{ io.Reader }{c})
		mu.Lock()
		open--
		mu.Unlock()
	})
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Open = 2 })})
	var clients []*net.TCPConn
	for range 10 {
		clients = append(clients, w.dial())
	}
	for _, c := range clients {
		c.CloseWrite()
	}
	for _, c := range clients {
		if _, err := io.ReadAll(c); err != nil {
			t.Error(err)
		}
	}
	w.over(10)
	mu.Lock()
	defer mu.Unlock()
	if most != 2 {
		t.Errorf("%d connections were open at a time, want 2", most)
	}
}

// What the kernel holds for a connection is nobody's memory but the host's.
func TestBuffersAreBounded(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s})
	for range large + 1 {
		c := w.dial() // one after the other: which of them gets large buffers is known
		c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	w.relay.mu.Lock()
	defer w.relay.mu.Unlock()
	small := 0
	for c := range w.relay.conns {
		if got, want := buffers(t, c.inside), [2]int{2 * smallBuffer, 2 * smallBuffer}; got != want {
			t.Errorf("the buffers of an accepted socket: %v, want %v", got, want)
		}
		if buffers(t, c.outside) == [2]int{2 * smallBuffer, 2 * smallBuffer} {
			small++
		}
	}
	if small != 1 || len(w.relay.conns) != large+1 {
		t.Errorf("%d of %d dialled sockets have small buffers, want 1", small, len(w.relay.conns))
	}
}

func buffers(t *testing.T, c *net.TCPConn) (size [2]int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for i, opt := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		var failed error
		err := raw.Control(func(fd uintptr) { size[i], failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, opt) })
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
	}
	return size
}

func TestTotalConnections(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Total = 3 })})
	var clients []*net.TCPConn
	say := func(c *net.TCPConn) {
		c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		clients = append(clients, w.dial())
		say(clients[len(clients)-1])
	}
	if _, err := net.Dial("tcp4", w.inside); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the fourth connection: %v", err)
	}
	for _, c := range clients {
		say(c)
		c.CloseWrite()
	}
	for _, c := range w.over(3) {
		same(t, c, result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 2, BytesDown: 2, Verdict: result.Closed})
	}
}

// What is refused counts as well: each costs the host work.
func TestRefusedConnectionsCount(t *testing.T) {
	s := listen(t)
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Total = 2 })})
	w.toName(host, s.port+1)
	w.resets()
	w.resets()
	if _, err := net.Dial("tcp4", w.inside); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the third connection: %v", err)
	}
}

func TestRate(t *testing.T) {
	s := listen(t).serve(echo)
	w := build(t, setup{server: s, cfg: limited(func(l *Limits) { l.Rate = 1 << 20 })})
	data := pattern(200 << 10)
	begun := time.Now()
	c := w.dial()
	go func() {
		c.Write(data)
		c.CloseWrite()
	}()
	b, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(b, data) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	// Both ways together 400 KiB, of which a tenth of a second's come at once.
	if took, least := time.Since(begun), 290*time.Millisecond; took < least {
		t.Errorf("it took %v, less than %v", took, least)
	}
}

func TestBucket(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBucket(10_000)
	for _, c := range []struct {
		n     int
		after time.Duration
		want  time.Duration
	}{
		{1000, 0, 0}, {1000, 0, 100 * time.Millisecond}, {500, 0, 150 * time.Millisecond},
		{500, 150 * time.Millisecond, 50 * time.Millisecond},
		{1000, time.Hour, 0}, {1, 0, 100 * time.Microsecond}, {0, time.Hour, 0},
	} {
		now = now.Add(c.after)
		if got := b.reserve(c.n, now); got != c.want {
			t.Errorf("reserve(%d) after %v = %v, want %v", c.n, c.after, got, c.want)
		}
	}
	for rate, want := range map[int64]int{0: pieceMax, 1: pieceMin, 1 << 20: 104857, 1 << 40: pieceMax} {
		if got := newBucket(rate).piece(); got != want {
			t.Errorf("a piece at %d bytes in a second: %d, want %d", rate, got, want)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	slow := newBucket(1)
	if slow.wait(ended, 1000) || !newBucket(0).wait(ended, 1000) {
		t.Error("a wait that was ended, or none that was needed")
	}
}

func TestBudget(t *testing.T) {
	b := newBudget(10)
	var wg sync.WaitGroup
	got := make(chan int, 5)
	for range 5 {
		wg.Go(func() { got <- b.take(3) })
	}
	wg.Wait()
	close(got)
	sum := 0
	for n := range got {
		sum += n
	}
	if sum != 10 || b.take(1) != 0 {
		t.Errorf("%d of 10 were given", sum)
	}
}
