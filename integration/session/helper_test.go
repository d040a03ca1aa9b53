// Package session tests sandglass session as a tool uses it: the real binary on
// two pipes, as root and as an ordinary user.
package session

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/schema"
	"sandglass/pkg/result"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// shape is the schema of replies, read before a test hides where it lies.
var shape, shapeErr = func() (s schema.Schema, err error) {
	text, err := os.ReadFile("../../docs/session.schema.json")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}()

// client is one session and its two pipes.
type client struct {
	t     *testing.T
	p     *testkit.Process
	in    *os.File
	out   *os.File
	lines *bufio.Reader
	hello reply
}

// reply is any line of a session's.
type reply struct {
	Type, ID, To, Stream, Text, Base64 string
	Code, Error, Version               string
	ExitCode                           int `json:"exit_code"`
	Hints, Languages, Features         []string
	Protocol                           int
	Limits, Warm                       map[string]int64
	Result                             result.Result
}

func open(t *testing.T, who testkit.Who, flags ...string) *client {
	t.Helper()
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	c := &client{t: t, in: inW, out: outR, lines: bufio.NewReaderSize(outR, 1<<20)}
	if shapeErr != nil {
		t.Fatal(shapeErr)
	}
	c.p = testkit.Start(t, testkit.Opts{Verb: "session", Who: who, Stdin: inR, Stdout: outW}, append(who.Flags(), flags...)...)
	inR.Close()
	outW.Close()
	c.hello = c.want("hello", "")
	return c
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// sh asks for a shell script; more are further fields.
func (c *client) sh(id, script, more string) {
	c.t.Helper()
	text, err := json.Marshal(script)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(`{"type":"run","id":%q,"command":["sh","-c",%s]%s}`, id, text, more)
}

func (c *client) read() (r reply) {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("%v after %.300q", err, line)
	}
	for _, bad := range shape.Validate(line, "reply") {
		c.t.Errorf("%s: %.300s", bad, line)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		c.t.Fatalf("%v: %.300s", err, line)
	}
	return r
}

// want reads one reply of a type and an id.
func (c *client) want(kind, id string) reply {
	c.t.Helper()
	r := c.read()
	if r.Type != kind || r.ID != id {
		c.t.Fatalf("got %.600s, want %s %s", fmt.Sprintf("%+v", r), kind, id)
	}
	return r
}

// ended is the result of a run that the program ended.
func (c *client) ended(id string) result.Result {
	c.t.Helper()
	r := c.want("result", id).Result
	if r.Outcome != result.Exited || r.Error != "" {
		c.t.Fatalf("%s: %s %d %q, stderr %q", id, r.Outcome, r.ExitCode, r.Error, r.Stderr.Text)
	}
	return r
}

// wrong reads an error reply.
func (c *client) wrong(id, code string) reply {
	c.t.Helper()
	r := c.want("error", id)
	if r.Code != code || r.Error == "" {
		c.t.Fatalf("got %+v, want the code %s", r, code)
	}
	return r
}

// close ends the requests and expects a good end.
func (c *client) close() {
	c.t.Helper()
	c.in.Close()
	if line, err := c.lines.ReadString('\n'); err == nil {
		c.t.Errorf("a line too many: %.300s", line)
	}
	if out := c.p.Wait(); out.Exit != 0 || out.Stderr != "" {
		c.t.Errorf("exit %d, stderr %q", out.Exit, out.Stderr)
	}
}
