package launch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"sandglass/internal/deliver"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestPump: the head is kept to the byte, the flood is counted and dropped.
func TestPump(t *testing.T) {
	for _, c := range []struct {
		write, limit, kept int
		truncated          bool
	}{{0, 10, 0, false}, {9, 10, 9, false}, {10, 10, 10, false}, {11, 10, 10, true}, {300000, 70000, 70000, true}} {
		r, w := pipe(t)
		var got bytes.Buffer
		full := 0
		p := startPump(r, &got, int64(c.limit), func() { full++ })
		data := bytes.Repeat([]byte{0, 0xff, '\n'}, c.write/3+1)[:c.write]
		w.Write(data)
		w.Close()
		<-p.done
		if !bytes.Equal(got.Bytes(), data[:c.kept]) {
			t.Errorf("%d of %d: other bytes", c.write, c.limit)
		}
		if p.count.Bytes != int64(c.write) || p.count.Kept != int64(c.kept) || p.count.Truncated != c.truncated || (full == 1) != c.truncated {
			t.Errorf("%d of %d: %+v, full %d", c.write, c.limit, p.count, full)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

// TestPumpCallerGone: a caller that stops reading closes the program's pipe.
func TestPumpCallerGone(t *testing.T) {
	r, w := pipe(t)
	p := startPump(r, broken{}, 100, func() {})
	w.Write([]byte("x"))
	<-p.done
	if _, err := w.Write([]byte("y")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("the program's next write: %v, want EPIPE", err)
	}
}

// TestPumpStuck: a reader that takes nothing is given up, and what it has taken
// until then is told.
func TestPumpStuck(t *testing.T) {
	defer func(d time.Duration) { readerTime = d }(readerTime)
	readerTime = time.Millisecond
	r, w := pipe(t)
	in := make(chan struct{})
	p := startPump(r, stuck{in}, 100, func() {})
	w.Write([]byte("xyz"))
	<-in
	count, err := p.settle(time.Now())
	if err != deliver.ErrStuck || count.Bytes != 3 || count.Kept != 0 {
		t.Errorf("%+v, %v", count, err)
	}
	// A pipe that somebody outside holds open is no loss of the caller's.
	r, _ = pipe(t)
	p = startPump(r, io.Discard, 100, func() {})
	if count, err := p.settle(time.Now()); err != nil || count.Bytes != 0 {
		t.Errorf("%+v, %v", count, err)
	}
}

// stuck never comes back from a write.
type stuck struct{ in chan struct{} }

func (s stuck) Write([]byte) (int, error) { close(s.in); select {} }

// TestPumpSlow: a reader that goes on taking is not given up, however long all
// of it takes: here the end is two hours ago, and the last byte was just taken.
func TestPumpSlow(t *testing.T) {
	defer func(d time.Duration) { readerTime = d }(readerTime)
	readerTime = time.Hour
	r, w := pipe(t)
	to := slow{make(chan struct{}), make(chan struct{})}
	p := startPump(r, to, 100, func() {})
	w.Write([]byte("xyz"))
	<-to.in
	to.step <- struct{}{}
	w.Write([]byte("zyx"))
	<-to.in
	settled := make(chan error)
	go func() {
		_, err := p.settle(time.Now().Add(-2 * time.Hour))
		settled <- err
	}()
	w.Close()
	select {
	case err := <-settled:
		t.Errorf("not waited for: %v", err)
	case to.step <- struct{}{}:
		if err := <-settled; err != nil {
			t.Error(err)
		}
	}
	<-p.done
	if p.count.Kept != 6 {
		t.Errorf("%d bytes kept", p.count.Kept)
	}
}

// slow says that it has data, and takes it when it is told to.
type slow struct{ in, step chan struct{} }

func (s slow) Write(data []byte) (int, error) {
	s.in <- struct{}{}
	<-s.step
	return len(data), nil
}

// TestPumpNonBlocking: a description that is made non-blocking later, by another
// process that shares it, loses nothing.
func TestPumpNonBlocking(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	in, out := os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")
	defer in.Close()
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	const size = 300000 // more than a pipe holds
	r, w := pipe(t)
	p := startPump(r, out, size, func() {})
	go func() {
		w.Write(make([]byte, size))
		w.Close()
		<-p.done
		out.Close()
	}()
	got, err := io.ReadAll(in)
	<-p.done
	if err != nil || len(got) != size || p.count.Kept != size || p.err != nil {
		t.Errorf("%d bytes came, kept %d, %v, %v", len(got), p.count.Kept, err, p.err)
	}
}

func sockets(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs = os.NewFile(uintptr(p[0]), "a"), os.NewFile(uintptr(p[1]), "b")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

func say(t *testing.T, f *os.File, data []byte, fds ...int) {
	t.Helper()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(int(f.Fd()), data, rights, nil, 0); err != nil {
		t.Fatal(err)
	}
}

func TestListen(t *testing.T) {
	ours, theirs := sockets(t)
	ch := listen(ours)
	say(t, theirs, wire.Frame(wire.TypeStarted, (&wire.Report{}).Encode()), 0, 1)
	m := <-ch
	if m.err != nil || m.report.Type != wire.TypeStarted || len(m.fds) != 2 {
		t.Fatalf("got %+v", m)
	}
	closeAll(m.fds)
	theirs.Close()
	if m := <-ch; m.err == nil {
		t.Errorf("after the end: %+v", m)
	}
	if _, ok := <-ch; ok {
		t.Error("the channel is still open")
	}
}

// TestListenHostile: init taken over can say what it likes; it only ends its run.
func TestListenHostile(t *testing.T) {
	for name, data := range map[string][]byte{
		"garbage":   bytes.Repeat([]byte{0xff}, 100),
		"too large": {byte(wire.TypeStarted), 0xff, 0xff, 0xff, 0x7f},
		"config":    wire.Frame(wire.TypeConfig, nil),
		"trailing":  wire.Frame(wire.TypeStarted, append((&wire.Report{}).Encode(), 0)),
	} {
		ours, theirs := sockets(t)
		ch := listen(ours)
		say(t, theirs, data, 0)
		theirs.Close()
		if m := <-ch; m.err == nil {
			t.Errorf("%s was taken for %+v", name, m.report)
		}
	}
}

// TestListenManyDescriptors: more descriptors than the protocol has are not kept.
func TestListenManyDescriptors(t *testing.T) {
	before := openDescriptors(t)
	ours, theirs := sockets(t)
	ch := listen(ours)
	say(t, theirs, wire.Frame(wire.TypeStarted, (&wire.Report{}).Encode()), 0, 0, 0, 0, 0, 0, 0, 0)
	if m := <-ch; m.err == nil {
		closeAll(m.fds)
		t.Errorf("taken: %+v", m)
	}
	ours.Close()
	theirs.Close()
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// TestSendLarge: a plan larger than the socket's buffer does not block send.
func TestSendLarge(t *testing.T) {
	ours, theirs := sockets(t)
	frame := wire.Frame(wire.TypeConfig, bytes.Repeat([]byte("x"), 4<<20))
	send(ours, frame)
	typ, body, err := wire.ReadFrame(theirs, 8<<20)
	if err != nil || typ != wire.TypeConfig || len(body) != 4<<20 {
		t.Errorf("got %d, %d bytes, %v", typ, len(body), err)
	}
}

func TestFeed(t *testing.T) {
	r, w := pipe(t)
	go feed(w, bytes.NewReader([]byte("in")))
	if got, err := io.ReadAll(r); err != nil || string(got) != "in" {
		t.Errorf("got %q, %v", got, err)
	}
}
