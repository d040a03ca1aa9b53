package resolver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// far is when a test gives up.
func far(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
}

// overUDP serves a socket; client is connected to it. stop closes it and gives
// what ServePacket returned.
func overUDP(t *testing.T, s *Server) (client net.Conn, stop func() error) {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServePacket(pc) }()
	client, err = net.Dial("udp4", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	far(t, client)
	return client, func() error { client.Close(); pc.Close(); return <-ended }
}

func datagram(t *testing.T, client net.Conn) string {
	t.Helper()
	buf := make([]byte, 1500)
	n, err := client.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return text(t, buf[:n])
}

func write(t *testing.T, w io.Writer, b []byte) {
	t.Helper()
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
}

// TestUDP: a slow name holds nobody up, what is no query is passed over, and the
// end comes at once, with nothing left.
func TestUDP(t *testing.T) {
	done := nothingLeft(t)
	s, h := newServer(t, "a.example", "slow.example", "slow2.example")
	client, stop := overUDP(t, s)
	write(t, client, ask(t, "slow.example.", a))
	write(t, client, make([]byte, maxQuery+1))
	write(t, client, []byte("rubbish"))
	write(t, client, ask(t, "a.example.", a))
	if got := datagram(t, client); got != "Success a.example. a.example.=198.18.1.1" {
		t.Error(got)
	}
	<-h.slow
	h.release <- struct{}{}
	if got := datagram(t, client); got != "Success slow.example. slow.example.=198.18.1.2" {
		t.Error(got)
	}
	write(t, client, ask(t, "slow2.example.", a))
	<-h.slow
	if err := stop(); err != nil {
		t.Errorf("ServePacket: %v", err)
	}
	canceled(t, h, 1)
	done()
}

// shortOfMemory is a socket of which the first reads fail.
type shortOfMemory struct {
	net.PacketConn
	fail int
}

func (c *shortOfMemory) ReadFrom(b []byte) (int, net.Addr, error) {
	if c.fail > 0 {
		c.fail--
		return 0, nil, &net.OpError{Op: "read", Err: syscall.ENOBUFS}
	}
	return c.PacketConn.ReadFrom(b)
}

// TestUDPAfterAnError: a read that fails does not end the name server.
func TestUDPAfterAnError(t *testing.T) {
	done := nothingLeft(t)
	s, _ := newServer(t, "a.example")
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServePacket(&shortOfMemory{PacketConn: pc, fail: 2}) }()
	client, err := net.Dial("udp4", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	far(t, client)
	write(t, client, ask(t, "a.example.", a))
	if got := datagram(t, client); got != "Success a.example. a.example.=198.18.1.1" {
		t.Error(got)
	}
	client.Close()
	pc.Close()
	if err := <-ended; err != nil {
		t.Errorf("ServePacket: %v", err)
	}
	done()
}

// canceled checks that so many lookups ended because nobody waited for them, and
// none by its own time limit.
func canceled(t *testing.T, h *host, n int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if want := slices.Repeat([]error{context.Canceled}, n); !slices.Equal(h.ended, want) {
		t.Errorf("lookups ended by %v, want %v", h.ended, want)
	}
}

// TestUDPBusy: only so many queries wait for the host; more are told to come
// again, and what needs no host is answered all the same.
func TestUDPBusy(t *testing.T) {
	done := nothingLeft(t)
	s, h := newServer(t, "slow.example", "a.example")
	client, stop := overUDP(t, s)
	for range maxWaiting {
		write(t, client, ask(t, "slow.example.", a))
		<-h.slow
	}
	write(t, client, ask(t, "a.example.", a))
	if got := datagram(t, client); got != "ServerFailure a.example." {
		t.Error(got)
	}
	write(t, client, ask(t, "b.example.", a))
	if got := datagram(t, client); got != "NameError b.example." {
		t.Error(got)
	}
	stop()
	canceled(t, h, maxWaiting)
	done()
}

// overTCP serves one connection. ended is closed when ServeConn has returned.
func overTCP(t *testing.T, s *Server) (client *net.TCPConn, ended chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	far(t, c)
	ended = make(chan struct{})
	go func() { defer close(ended); s.ServeConn(conn) }()
	return c.(*net.TCPConn), ended
}

func framed(msg []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
}

func unframed(t *testing.T, r io.Reader) string {
	t.Helper()
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		t.Fatal(err)
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(r, msg); err != nil {
		t.Fatal(err)
	}
	return text(t, msg)
}

// TestTCP: several queries at once on one connection, byte by byte if need be; a
// client that closes its side has its answers first.
func TestTCP(t *testing.T) {
	done := nothingLeft(t)
	s, h := newServer(t, "a.example", "slow.example")
	client, ended := overTCP(t, s)
	write(t, client, framed(ask(t, "slow.example.", a)))
	for _, b := range framed(ask(t, "a.example.", aaaa)) {
		write(t, client, []byte{b})
	}
	if got := unframed(t, client); got != "Success a.example. a.example.=fd73:616e:6467::c612:101" {
		t.Error(got)
	}
	<-h.slow
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(h.release)
	if got := unframed(t, client); got != "Success slow.example. slow.example.=198.18.1.2" {
		t.Error(got)
	}
	if rest, err := io.ReadAll(client); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v after the last answer", rest, err)
	}
	<-ended
	client.Close()
	done()
}

// TestTCPEnds: lengths that no query has end a connection, and so does its
// other side, whatever is still being looked up.
func TestTCPEnds(t *testing.T) {
	done := nothingLeft(t)
	s, h := newServer(t, "slow.example")
	for _, b := range [][]byte{{0, 0}, {0, 11}, {0x10, 1}, {0xff, 0xff}} {
		client, ended := overTCP(t, s)
		write(t, client, b)
		<-ended
		if rest, err := io.ReadAll(client); err != nil || len(rest) != 0 {
			t.Errorf("%x: %q, %v", b, rest, err)
		}
		client.Close()
	}
	client, ended := overTCP(t, s)
	write(t, client, framed(ask(t, "slow.example.", a)))
	<-h.slow
	if err := client.SetLinger(0); err != nil { // a reset
		t.Fatal(err)
	}
	client.Close()
	<-ended
	canceled(t, h, 1)
	done()
}

// TestTCPBusy: one connection has so many queries that wait, the run so many
// connections.
func TestTCPBusy(t *testing.T) {
	done := nothingLeft(t)
	s, h := newServer(t, "slow.example", "a.example")
	client, ended := overTCP(t, s)
	for range maxPipelined {
		write(t, client, framed(ask(t, "slow.example.", a)))
		<-h.slow
	}
	write(t, client, framed(ask(t, "a.example.", a)))
	if got := unframed(t, client); got != "ServerFailure a.example." {
		t.Error(got)
	}
	var others []func()
	for range maxStreams - 1 {
		c, end := overTCP(t, s)
		write(t, c, framed(ask(t, "b.example.", a))) // it is counted once it answers
		if got := unframed(t, c); got != "NameError b.example." {
			t.Error(got)
		}
		others = append(others, func() { c.Close(); <-end })
	}
	more, end := overTCP(t, s)
	<-end
	if rest, err := io.ReadAll(more); err != nil || len(rest) != 0 {
		t.Errorf("one too many: %q, %v", rest, err)
	}
	more.Close()
	for _, f := range others {
		f()
	}
	close(h.release)
	client.Close()
	<-ended
	if n := s.streams.n.Load(); n != 0 {
		t.Errorf("%d connections are counted", n)
	}
	done()
}

// TestTCPHalf: a client that closes its side after its last query still waits
// for the answer.
func TestTCPHalf(t *testing.T) {
	s, h := newServer(t, "slow.example")
	c := &half{timed: timed{in: bytes.NewReader(framed(ask(t, "slow.example.", a)))}, end: make(chan struct{})}
	ended := make(chan struct{})
	go func() { defer close(ended); s.ServeConn(c) }()
	<-h.slow
	<-c.end
	for range 1000 {
		runtime.Gosched() // what the end of its side brings about happens now
	}
	close(h.release)
	<-ended
	if got := unframed(t, &c.out); got != "Success slow.example. slow.example.=198.18.1.1" {
		t.Error(got)
	}
}

// half is a connection whose other side has closed, and reads on.
type half struct {
	timed
	end chan struct{}
	out bytes.Buffer
}

func (c *half) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	if err != nil {
		close(c.end)
	}
	return n, err
}

func (c *half) Write(b []byte) (int, error) { return c.out.Write(b) }

// timed is a connection that never gives anything and remembers its deadlines.
type timed struct {
	net.Conn
	mu          sync.Mutex
	read, write time.Time
	in          *bytes.Reader
}

func (c *timed) SetReadDeadline(d time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = d
	return nil
}

func (c *timed) SetWriteDeadline(d time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = d
	return nil
}

func (c *timed) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *timed) Write(b []byte) (int, error) { return 0, fmt.Errorf("the reader takes nothing") }
func (c *timed) Close() error                { return nil }

// TestDeadlines: a message has to come in within idle, an answer has to be taken
// within slowReader.
func TestDeadlines(t *testing.T) {
	s, _ := newServer(t, "a.example")
	c := &timed{in: bytes.NewReader(framed(ask(t, "b.example.", a)))}
	before := time.Now()
	s.ServeConn(c)
	after := time.Now()
	if c.read.Before(before.Add(idle)) || c.read.After(after.Add(idle)) {
		t.Errorf("reading ends %v after the start", c.read.Sub(before))
	}
	if c.write.Before(before.Add(slowReader)) || c.write.After(after.Add(slowReader)) {
		t.Errorf("writing ends %v after the start", c.write.Sub(before))
	}
}
