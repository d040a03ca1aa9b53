package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/testkit/schema"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// client drives a session whose runs are the test's own function.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	outR  *io.PipeReader
	stop  context.CancelCauseFunc
	end   chan error
	shape schema.Schema
}

// reply is any line of a session's.
type reply struct {
	Type, ID, To, Stream, Text, Base64 string
	Code                               Code
	Error                              string
	ExitCode                           int `json:"exit_code"`
	Hints                              []string
	Protocol                           int
	Limits                             map[string]int64
	Result                             result.Result
}

type runner = func(context.Context, sandbox.Spec) (sandbox.Result, error)

func start(t *testing.T, running, queued int64, run runner) *client {
	t.Helper()
	s, err := policy.ParseSession(nil, running)
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancelCause(context.Background())
	c := &client{t: t, in: inW, out: bufio.NewReader(outR), outR: outR, stop: stop, end: make(chan error, 1),
		shape: schema.Load(t, "../../docs/session.schema.json")}
	go func() {
		c.end <- Serve(ctx, Config{Version: "test", Languages: []string{"python"}, Defaults: s.Defaults, Running: running, Queued: queued, Run: run}, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() { stop(nil); inW.Close(); outR.Close() })
	if hello := c.read(); hello.Type != "hello" || hello.Protocol != 1 || hello.Limits["running"] != running || hello.Limits["line_bytes"] != MaxLine {
		t.Fatalf("%+v", hello)
	}
	return c
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) run(id string, more ...string) {
	c.t.Helper()
	c.send(`{"type":"run","id":%q,"command":["x"]%s}`, id, strings.Join(more, ""))
}

func (c *client) read() (r reply) {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("%v after %q", err, line)
	}
	for _, bad := range c.shape.Validate(line, "reply") {
		c.t.Errorf("%s: %.300s", bad, line)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		c.t.Fatalf("%v: %s", err, line)
	}
	return r
}

// want reads one reply of a type and an id; of an error its code as well.
func (c *client) want(kind, id string, code ...Code) reply {
	c.t.Helper()
	r := c.read()
	if r.Type != kind || r.ID != id || len(code) == 1 && r.Code != code[0] || len(code) == 0 && r.Code != "" {
		c.t.Fatalf("got %+v, want %s %s %v", r, kind, id, code)
	}
	return r
}

func (c *client) finish() error {
	c.t.Helper()
	select {
	case err := <-c.end:
		return err
	case <-time.After(time.Minute):
		c.t.Fatal("the session does not end")
		return nil
	}
}

func exited(out string) runner {
	return func(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
		n, err := io.WriteString(s.Stdout, out)
		res := result.Result{Outcome: result.Exited, PolicySHA256: s.Digest(), Stdout: result.Stream{Bytes: int64(len(out)), Kept: int64(n)}}
		return res, err
	}
}

// held waits for its context, or for the test.
func held(started chan<- string, free <-chan struct{}) runner {
	return func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		started <- strings.Join(s.Env, " ")
		res := result.Result{Outcome: result.Exited, PolicySHA256: s.Digest()}
		select {
		case <-free:
		case <-ctx.Done():
			res.Outcome, res.ExitCode = result.Canceled, 137
		}
		return res, nil
	}
}

func TestAnswers(t *testing.T) {
	c := start(t, 1, 0, exited("hi\x00\n"))
	c.run("a")
	if r := c.want("result", "a"); r.Result.Stdout.Text != "hi\x00\n" || r.Result.Outcome != result.Exited {
		t.Errorf("%+v", r.Result)
	}
	c.send("  \r")
	c.run("a", `,"output":"stream"`) // an id is free again after its last reply
	c.want("started", "a")
	if r := c.want("output", "a"); r.Stream != "stdout" || r.Text != "hi\x00\n" {
		t.Errorf("%+v", r)
	}
	if r := c.want("result", "a"); r.Result.Stdout.Text != "" || r.Result.Stdout.Kept != 4 {
		t.Errorf("%+v", r.Result)
	}
	c.in.Close()
	if err := c.finish(); err != nil {
		t.Error(err)
	}
}

// TestWrongLines: each has its reply and the next is read.
func TestWrongLines(t *testing.T) {
	c := start(t, 1, 0, exited(""))
	for _, l := range []struct {
		line, kind, id string
		code           Code
	}{
		{"nonsense", "error", "", Malformed},
		{"\xff\x00", "error", "", Malformed},
		{`{"id":"x","type":"run","nope":1}`, "error", "x", Malformed},
		{`{"id":"x","type":"` + strings.Repeat("y", 1<<20) + `"}`, "error", "x", UnknownType},
		{`{"id":"x","type":"cancel"}`, "error", "x", UnknownID},
		{`{"id":"x","type":"run","command":["a"],"options":{"privileged":true}}`, "error", "x", Refused},
		{`{"id":"x","type":"run","command":["a"],"files":[{"path":"../x","text":""}]}`, "error", "x", Refused},
		{`{"id":"x","type":"run","command":["a"],"options":{"output-limit":"17m"}}`, "error", "x", Refused},
		{`{"id":"x","type":"run","command":["a"],"artifacts":{"inline":"9m"}}`, "error", "x", Refused},
		{strings.Repeat("a", MaxLine+1), "error", "", TooLarge},
		{strings.Repeat(" ", MaxLine-40) + `{"id":"x","type":"cancel"}`, "error", "x", UnknownID},
	} {
		c.send("%s", l.line)
		if r := c.want(l.kind, l.id, l.code); r.Error == "" || len(r.Error) > 500 || (r.Code == Refused) != (r.ExitCode == 125) {
			t.Errorf("%.60s: %+v", l.line, r)
		}
	}
	c.run("good")
	c.want("result", "good")
	io.WriteString(c.in, `{"type":"cancel","id":"last"}`) // no newline
	c.in.Close()
	c.want("error", "last", UnknownID)
	if err := c.finish(); err != nil {
		t.Error(err)
	}
}

func TestQueue(t *testing.T) {
	started, free := make(chan string, 8), make(chan struct{})
	c := start(t, 1, 2, held(started, free))
	for _, id := range []string{"1", "2", "3"} {
		c.run(id, `,"env":{"N":"`+id+`"}`)
	}
	if got := <-started; got != "N=1" {
		t.Fatal(got)
	}
	c.run("4")
	c.want("error", "4", Busy)
	c.run("2")
	if r := c.want("error", "2", DuplicateID); r.To != "run" {
		t.Errorf("%+v", r)
	}
	c.send(`{"type":"cancel","id":"2"}`)
	c.want("error", "2", Canceled)
	c.run("5", `,"env":{"N":"5"}`) // its place is free
	c.send(`{"type":"cancel","id":"1"}`)
	if r := c.want("result", "1"); r.Result.Outcome != result.Canceled {
		t.Errorf("%+v", r)
	}
	if got := <-started; got != "N=3" {
		t.Fatal(got)
	}
	c.in.Close() // what was accepted is finished
	close(free)
	c.want("result", "3")
	c.want("result", "5")
	if err := c.finish(); err != nil {
		t.Error(err)
	}
}

// TestHeldMemory: large requests that wait are bounded by their bytes.
func TestHeldMemory(t *testing.T) {
	started, free := make(chan string, 8), make(chan struct{})
	c := start(t, 1, 1000, held(started, free))
	big := `,"stdin":"` + strings.Repeat("x", MaxLine-100) + `"`
	for i := range 4 {
		c.run(fmt.Sprint(i), big)
	}
	c.run("4", big)
	c.want("error", "4", Busy)
	c.run("small")
	c.send(`{"type":"cancel","id":"3"}`)
	c.want("error", "3", Canceled)
	c.run("5", big)
	close(free)
	for _, id := range []string{"0", "1", "2", "small", "5"} {
		c.want("result", id)
	}
}

// TestEndOfContext: runs are cancelled, those that wait are told.
func TestEndOfContext(t *testing.T) {
	started := make(chan string, 8)
	c := start(t, 2, 8, held(started, nil))
	for _, id := range []string{"1", "2", "3", "4"} {
		c.run(id)
	}
	<-started
	<-started
	cause := errors.New("a signal")
	c.stop(cause)
	got := map[string]string{}
	for range 4 {
		r := c.read()
		got[r.ID] = r.Type + string(r.Code) + string(r.Result.Outcome)
	}
	if want := "map[1:resultcanceled 2:resultcanceled 3:errorclosing 4:errorclosing]"; fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if err := c.finish(); !errors.Is(err, cause) {
		t.Error(err)
	}
	if len(started) != 0 {
		t.Error("one was started after the end")
	}
}

// TestReaderGone: nobody to answer is the end of every run.
func TestReaderGone(t *testing.T) {
	started := make(chan string, 8)
	c := start(t, 2, 8, held(started, nil))
	c.run("1")
	<-started
	c.outR.Close()
	c.send("nonsense")
	if err := c.finish(); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

// fails is a writer with room for that many writes.
type fails int

func (f *fails) Write(b []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestReplyLost: requests that end while a reply cannot be written are no good end,
// whichever reply it is.
func TestReplyLost(t *testing.T) {
	s, err := policy.ParseSession(nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	const run = `{"type":"run","id":"1","command":["true"]}` + "\n"
	for _, c := range []struct {
		requests string
		room     fails
		lost     bool
	}{
		{"", 0, true}, // hello
		{"", 1, false},
		{"nonsense\n", 1, true},
		{"nonsense\n", 2, false},
		{run, 1, true},
		{run, 2, false},
	} {
		for range 20 {
			room := c.room
			conf := Config{Version: "test", Defaults: s.Defaults, Running: 2, Queued: 8, Run: exited("")}
			err := Serve(t.Context(), conf, strings.NewReader(c.requests), &room)
			if lost := errors.Is(err, ErrGone) && errors.Is(err, syscall.ENOSPC); lost != c.lost || !lost && err != nil {
				t.Fatalf("%q with room for %d: %v", c.requests, c.room, err)
			}
		}
	}
}

// TestStuckReader: a reader that takes nothing delays no run's end, and at the
// end of the requests it is given up.
func TestStuckReader(t *testing.T) {
	defer func(old time.Duration) { patience = old }(patience)
	patience = 100 * time.Millisecond
	var ended sync.WaitGroup
	ended.Add(2)
	c := start(t, 2, 8, func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		defer ended.Done()
		return exited("x")(ctx, s)
	})
	c.run("1")
	c.run("2")
	ended.Wait()
	c.in.Close()
	if err := c.finish(); !errors.Is(err, ErrStuck) {
		t.Error(err)
	}
}

// TestStreams: pieces are text where the whole is, none comes after the result,
// and their order is the program's.
func TestStreams(t *testing.T) {
	write := func(w io.Writer, parts ...string) {
		for _, p := range parts {
			io.WriteString(w, p)
		}
	}
	late := make(chan io.Writer, 1)
	c := start(t, 1, 0, func(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
		write(s.Stdout, "a\xc3", "\xa9b", "\xff\xfe", "\xf0\x9f")
		write(s.Stderr, "e")
		late <- s.Stdout
		return result.Result{Outcome: result.Exited, PolicySHA256: s.Digest()}, nil
	})
	c.run("1", `,"output":"stream"`)
	c.want("started", "1")
	var got []string
	for {
		r := c.read()
		if r.Type == "result" {
			break
		}
		got = append(got, r.Stream+":"+r.Text+r.Base64)
	}
	if want := "[stdout:a stdout:éb stdout://4= stderr:e stdout:8J8=]"; fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, err := io.WriteString(<-late, "late"); err == nil {
		t.Error("output after the result was taken")
	}
	c.run("2")
	c.want("result", "2")
}

// TestManyAtOnce: every run has its own answer, whatever the order.
func TestManyAtOnce(t *testing.T) {
	c := start(t, 64, 1000, func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		runtime.Gosched()
		return exited(strings.Join(s.Env, ""))(ctx, s)
	})
	const n = 500
	go func() {
		for i := range n {
			fmt.Fprintf(c.in, `{"type":"run","id":"r%d","command":["x"],"env":{"N":"%d"}}`+"\n", i, i)
		}
		c.in.Close()
	}()
	seen := map[string]bool{}
	for range n {
		r := c.read()
		if r.Type != "result" || "N="+strings.TrimPrefix(r.ID, "r") != r.Result.Stdout.Text || seen[r.ID] {
			t.Fatalf("%+v", r)
		}
		seen[r.ID] = true
	}
	if err := c.finish(); err != nil {
		t.Error(err)
	}
}
