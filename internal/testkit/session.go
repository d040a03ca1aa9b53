package testkit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"sandglass/pkg/result"
)

// Session is a "sandglass session" on two pipes, for tests of something else that
// want more than one run in it.
type Session struct {
	*Process
	In    *os.File
	lines *bufio.Scanner
}

// Answer is what such tests want of a line of a session's.
type Answer struct {
	Type, ID, Code, Error string
	Result                result.Result
}

// OpenSession starts a session as o says, and reads until a reply of a type: hello,
// or ready where something is kept ready.
func OpenSession(t testing.TB, o Opts, until string, flags ...string) *Session {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	stdin, in := pipe()
	out, stdout := pipe()
	o.Verb, o.Stdin, o.Stdout = "session", stdin, stdout
	s := &Session{Process: Start(t, o, flags...), In: in, lines: bufio.NewScanner(out)}
	stdin.Close()
	stdout.Close()
	s.lines.Buffer(nil, 1<<20)
	for s.Next().Type != until {
	}
	return s
}

// Next is the next reply.
func (s *Session) Next() (r Answer) {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("no reply: %v %s", s.lines.Err(), s.Wait().Stderr)
	}
	if err := json.Unmarshal(s.lines.Bytes(), &r); err != nil {
		s.t.Fatalf("%v: %.300s", err, s.lines.Bytes())
	}
	return r
}

// Ask runs one request, of which fields are all but type and id.
func (s *Session) Ask(fields string) Answer {
	s.t.Helper()
	fmt.Fprintf(s.In, `{"type":"run","id":"1",%s}`+"\n", fields)
	return s.Next()
}

// End ends the requests, and wants a good end.
func (s *Session) End() {
	s.t.Helper()
	s.In.Close()
	if o := s.Wait(); o.Exit != 0 || o.Stderr != "" {
		s.t.Errorf("exit %d, %s", o.Exit, o.Stderr)
	}
}
