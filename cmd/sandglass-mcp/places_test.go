package main

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	return ours, c.(*place)
}

// request is one that comes over a connection.
func (c *place) request(t *testing.T) *http.Request {
	return httptest.NewRequest("POST", endpoint, nil).WithContext(withPlace(t.Context(), c))
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
