package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// offered is a listener whose connections the test makes.
type offered chan net.Conn

func (o offered) Accept() (net.Conn, error) { return <-o, nil }
func (o offered) Close() error              { return nil }
func (o offered) Addr() net.Addr            { return &net.TCPAddr{} }

// dial makes a connection, and returns the client's end and the accepted place.
func (o offered) dial(t *testing.T, p *places) (net.Conn, *place) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() { o <- theirs }()
	c, err := p.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.(*place).set(true, true) // its server reads
	return ours, c.(*place)
}

// request is one with the token that comes over a connection.
func (c *place) request(t *testing.T) *http.Request {
	r := httptest.NewRequest("POST", endpoint, nil).WithContext(withPlace(t.Context(), c))
	admit(r)
	return r
}

// TestPlaces: a new connection has its place at once, and takes it from who waits
// longest: those first that do not know the token, and none that is being answered.
func TestPlaces(t *testing.T) {
	o := make(offered)
	p := newPlaces(o, 4)
	gone := func(ours net.Conn) { // or it blocks for ever
		t.Helper()
		if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v, want the end", err)
		}
	}
	_, busy := o.dial(t, p)
	leave := occupy(busy.request(t))
	idleEnd, idle := o.dial(t, p)
	occupy(idle.request(t))()
	firstEnd, _ := o.dial(t, p)
	secondEnd, _ := o.dial(t, p)
	_, last := o.dial(t, p)
	gone(firstEnd)
	defer occupy(last.request(t))()
	_, last = o.dial(t, p)
	gone(secondEnd)
	defer occupy(last.request(t))()
	_, last = o.dial(t, p)
	gone(idleEnd)
	leaveLast := occupy(last.request(t))
	defer leaveLast()
	if p.weakest() != nil || len(p.all) != 4 {
		t.Fatalf("%+v", p.all)
	}
	// All are being answered: the next waits for one of them.
	ours, theirs := net.Pipe()
	defer ours.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		o <- theirs
		leave()
	}()
	go func() {
		c, _ := p.Accept()
		accepted <- c
	}()
	if c := <-accepted; c.(*place).Conn != theirs || p.all[3] != c {
		t.Errorf("%+v", p.all)
	}
}

// TestAnswerThatNobodyTakes: who reads nothing of an answer keeps no place for ever.
func TestAnswerThatNobodyTakes(t *testing.T) {
	defer func(old time.Duration) { answerTime = old }(answerTime)
	answerTime = 50 * time.Millisecond
	end := make(chan error, 1)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for block := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(block)
		}
		end <- err
	})
	s := httptest.NewServer(&guard{o: &options{}, token: sha256.Sum256([]byte("x")), next: next, tools: &tools{}})
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-end; err == nil {
		t.Error("no error")
	}
}

// TestStrangersWhileABodyComes: who knows the token keeps its place while its body is on
// the way, whatever others open.
func TestStrangersWhileABodyComes(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") })
	s := httptest.NewUnstartedServer(&guard{o: &options{}, token: sha256.Sum256([]byte("x")), next: next, tools: &tools{}})
	s.Listener, s.Config.ConnContext = newPlaces(s.Listener, 2), withPlace
	s.Start()
	defer s.Close()
	dial := func(text string) net.Conn {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	const asked = "HTTP/1.1 100 Continue\r\n\r\n"
	good, got := dial("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"), make([]byte, len(asked))
	if _, err := io.ReadFull(good, got); err != nil || string(got) != asked {
		t.Fatalf("%q, %v", got, err)
	}
	strangers := []net.Conn{dial(""), dial(""), dial("")}
	for _, c := range strangers[:2] {
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v, want the end", err)
		}
	}
	io.WriteString(good, "{}")
	if text, err := io.ReadAll(good); err != nil || !strings.HasSuffix(string(text), "\r\n\r\ndone") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestBodyOfARefusedRequest: who is refused and sends no body is waited for no longer.
func TestBodyOfARefusedRequest(t *testing.T) {
	defer func(old time.Duration) { refusedTime = old }(refusedTime)
	refusedTime = 50 * time.Millisecond
	s := httptest.NewServer(&guard{o: &options{}, token: sha256.Sum256([]byte("x")), tools: &tools{}})
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer y\r\nContent-Length: 2\r\n\r\n")
	if text, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 401 ") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRequestsThatCame: what has come over a connection is looked at before it gives way,
// whatever others open meanwhile; who then says nothing more does.
func TestRequestsThatCame(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := newPlaces(l, 2)
	dial := func(text string) (net.Conn, *place) {
		t.Helper()
		ours, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ours.Close() })
		ours.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(ours, text)
		c, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return ours, c.(*place)
	}
	// reads has a server wait for what a stranger says.
	reads := func(c *place) {
		go c.Read(make([]byte, 1))
		for there := false; !there; {
			<-p.freed
			p.mu.Lock()
			there = c.reading
			p.mu.Unlock()
		}
	}
	gone := func(ours net.Conn) {
		t.Helper()
		if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v, want the end", err)
		}
	}
	goodEnd, good := dial("GE")
	for _, state := range []string{"nobody reads yet", "there is something to read"} {
		ours, stranger := dial("")
		reads(stranger)
		dial("")
		gone(ours)
		if p.all[0] != good {
			t.Fatalf("%s, and it is gone", state)
		}
		p.mu.Lock()
		p.all = p.all[:1] // the stranger that took the place
		p.mu.Unlock()
		good.set(true, true)
		raw, _ := good.Conn.(*net.TCPConn).SyscallConn()
		raw.Read(func(uintptr) bool { return unread(good.Conn) }) // it has come
	}
	if n, err := good.Read(make([]byte, 2)); n != 2 || err != nil || !good.arrives() {
		t.Errorf("%d, %v: what was read is not looked at yet", n, err)
	}
	reads(good)
	dial("")
	dial("")
	gone(goodEnd)
}

// taken is what an answer was written in; each part has its own time.
type taken struct {
	http.ResponseWriter
	timed bool
	parts []int
}

func (w *taken) SetWriteDeadline(time.Time) error {
	w.timed = true
	return nil
}

func (w *taken) Write(b []byte) (int, error) {
	if !w.timed {
		return 0, errors.New("no time of its own")
	}
	w.parts, w.timed = append(w.parts, len(b)), false
	return len(b), nil
}

// TestAnswerThatIsTakenSlowly: the whole of an answer, which is written at once, may take
// longer than a part.
func TestAnswerThatIsTakenSlowly(t *testing.T) {
	w := &taken{}
	n, err := timely{w}.Write(make([]byte, 2*answerPart+1))
	if want := []int{answerPart, answerPart, 1}; n != 2*answerPart+1 || err != nil || !slices.Equal(w.parts, want) {
		t.Errorf("%d, %v, in parts of %d, want %d", n, err, w.parts, want)
	}
}

// TestIDs: an id that the SDK would cut or change is refused, whatever its form.
func TestIDs(t *testing.T) {
	call := func(id string) []byte { return []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`) }
	for _, id := range []string{"1", "0", "-1", "9007199254740992", `"a"`, `""`, `"1.5"`, `"\u00e9"`} {
		if _, _, err := decode(call(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []string{"1.5", "1.0", "1e2", "-0", "9007199254740993", "9223372036854775807", "18446744073709551617", "1e300", "null", `"\ud800"`, "\"a\xff\""} {
		for _, text := range [][]byte{call(id), bytes.Join([][]byte{[]byte("["), call("1"), []byte(","), call(id), []byte("]")}, nil)} {
			if _, _, err := decode(text); err != errID {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if _, _, err := decode([]byte(`{"jsonrpc":"2.0","ID":1.5,"method":"notifications/initialized"}`)); err != nil {
		t.Error(err)
	}
	if got := string(problem(idOf(call("1.5")), -32600, "x")); !strings.Contains(got, `"id":1.5,`) {
		t.Error(got)
	}
}
