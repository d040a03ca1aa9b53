package session

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// writes is a runner of programs that write what stdin says on each stream, piece by
// piece; others write nothing.
func writes(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
	text, err := io.ReadAll(s.Stdin)
	if err != nil {
		return sandbox.Result{}, err
	}
	res := result.Result{Outcome: result.Exited, PolicySHA256: s.Digest()}
	for p := range strings.FieldsSeq(string(text)) {
		n, err := io.WriteString(s.Stdout, p)
		if res.Stdout.Kept += int64(n); err != nil {
			return sandbox.Result{}, err
		}
	}
	if ctx.Err() != nil {
		res.Outcome, res.ExitCode = result.Canceled, 137
	}
	return res, nil
}

// streams asks for a run with a window that writes n pieces of a size.
func (c *client) streams(id string, window, n, size int) {
	c.t.Helper()
	c.run(id, fmt.Sprintf(`,"output":"stream","window":%d,"stdin":%q`, window, strings.Repeat(strings.Repeat("x", size)+" ", n)))
	c.want("started", id)
}

// alone says that nothing of the others comes, but another run's answer.
func (c *client) alone(id string) {
	c.t.Helper()
	c.run(id)
	c.want("result", id)
}

func (c *client) piece(id string, size int) {
	c.t.Helper()
	if r := c.want("output", id); len(r.Text) != size {
		c.t.Fatalf("a piece of %d bytes, want %d", len(r.Text), size)
	}
}

// TestWindow: output past the window waits until room comes back, and nobody else does.
func TestWindow(t *testing.T) {
	c := start(t, 2, 0, writes)
	c.streams("slow", 2*piece+10, 6, piece-10)
	c.piece("slow", piece-10)
	c.piece("slow", piece-10) // the rest of 30 is not enough
	c.alone("quick")
	c.send(`{"type":"more","id":"slow","pieces":1}`)
	c.piece("slow", piece-10)
	c.alone("quick")
	c.send(`{"type":"more","id":"slow","pieces":2}`)
	c.piece("slow", piece-10)
	c.piece("slow", piece-10)
	c.alone("quick")
	c.send(`{"type":"cancel","id":"slow"}`) // which waits for no room
	c.piece("slow", piece-10)
	if r := c.want("result", "slow"); r.Result.Outcome != result.Canceled || r.Result.Stdout.Kept != 6*(piece-10) {
		t.Errorf("%+v", r.Result)
	}
}

// TestWindowOfPieces: small ones count as well, or a client keeps one for each byte.
func TestWindowOfPieces(t *testing.T) {
	c := start(t, 2, 0, writes)
	c.streams("slow", MaxWindow, WindowPieces+2, 1)
	for range WindowPieces {
		c.piece("slow", 1)
	}
	c.alone("quick")
	c.send(`{"type":"more","id":"slow","pieces":%d}`, WindowPieces)
	c.piece("slow", 1)
	c.piece("slow", 1)
	c.want("result", "slow")
}

// TestWindowAtTheEndOfRequests: no room can come back then, and what was accepted is
// finished with all that it writes, also what waits for its turn.
func TestWindowAtTheEndOfRequests(t *testing.T) {
	c := start(t, 1, 1, writes)
	defer time.AfterFunc(30*time.Second, func() { c.outR.Close() }).Stop()
	c.streams("a", piece, 4, piece)
	c.piece("a", piece)
	c.run("b", fmt.Sprintf(`,"output":"stream","window":%d,"stdin":%q`, piece, strings.Repeat("x ", 2*WindowPieces)))
	c.in.Close()
	for range 3 {
		c.piece("a", piece)
	}
	c.want("result", "a")
	c.want("started", "b")
	for range 2 * WindowPieces {
		c.piece("b", 1)
	}
	c.want("result", "b")
	if err := c.finish(); err != nil {
		t.Error(err)
	}
}

// TestOutputInPieces: what is longer than a piece is several, and the first and last
// bytes of a character stay together.
func TestOutputInPieces(t *testing.T) {
	c := start(t, 1, 0, func(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
		io.WriteString(s.Stdout, strings.Repeat("x", piece-1)+"é")
		io.WriteString(s.Stdout, strings.Repeat("y", piece-1)+"\xc3")
		return result.Result{Outcome: result.Exited, PolicySHA256: s.Digest()}, nil
	})
	c.run("a", fmt.Sprintf(`,"output":"stream","window":%d`, 4*piece))
	c.want("started", "a")
	c.piece("a", piece-1)
	c.piece("a", 2)
	c.piece("a", piece-1)
	if r := c.want("output", "a"); r.Base64 != "ww==" {
		t.Errorf("%+v", r)
	}
	c.want("result", "a")
}

// TestWrongWindows: each is answered, and gives room to nobody.
func TestWrongWindows(t *testing.T) {
	c := start(t, 3, 0, writes)
	c.streams("slow", piece, 3, piece)
	c.piece("slow", piece)
	c.streams("plain", piece, 0, 0)
	c.want("result", "plain")
	for _, window := range []string{"0", "-1", "65535", "1073741825", "1e30", "1e6", "65536.0", "+65536", "065536", `"65536"`, "null", "true", "[]", "99999999999999999999"} {
		c.send(`{"type":"run","id":"x","command":["a"],"output":"stream","window":%s}`, window)
		c.want("error", "x", Malformed)
	}
	for _, l := range []struct {
		line, id, to string
		code         Code
	}{
		{`{"type":"run","id":"x","command":["a"],"window":65536}`, "x", "run", Malformed},
		{`{"type":"run","id":"x","command":["a"],"output":"collect","window":65536}`, "x", "run", Malformed},
		{`{"type":"run","id":"x","command":["a"],"pieces":1}`, "x", "run", Malformed},
		{`{"type":"cancel","id":"slow","pieces":1}`, "slow", "cancel", Malformed},
		{`{"type":"more","id":"slow"}`, "slow", "more", Malformed},
		{`{"type":"more","pieces":1}`, "", "more", Malformed},
		{`{"type":"more","id":"slow","pieces":0}`, "slow", "more", Malformed},
		{`{"type":"more","id":"slow","pieces":-1}`, "slow", "more", Malformed},
		{`{"type":"more","id":"slow","pieces":1025}`, "slow", "more", Malformed},
		{`{"type":"more","id":"slow","pieces":9223372036854775808}`, "slow", "more", Malformed},
		{`{"type":"more","id":"slow","pieces":1,"window":65536}`, "slow", "more", Malformed},
		{`{"type":"more","id":"slow","pieces":2}`, "slow", "more", NotSent},
		{`{"type":"more","id":"slow","pieces":1024}`, "slow", "more", NotSent},
		{`{"type":"more","id":"nobody","pieces":1}`, "nobody", "more", UnknownID},
		{`{"type":"more","id":"plain","pieces":1}`, "plain", "more", UnknownID}, // it has ended
	} {
		c.send("%s", l.line)
		if r := c.want("error", l.id, l.code); r.To != l.to || len(r.Error) > 200 {
			t.Errorf("%s: %+v", l.line, r)
		}
	}
	c.alone("quick")
	c.send(`{"type":"more","id":"slow","pieces":1}`)
	c.piece("slow", piece)
	c.send(`{"type":"more","id":"slow","pieces":1}`)
	c.piece("slow", piece)
	c.want("result", "slow")
}

// TestMoreWithoutAWindow: there is nothing to give back then.
func TestMoreWithoutAWindow(t *testing.T) {
	started, free := make(chan string, 2), make(chan struct{})
	c := start(t, 1, 1, held(started, free))
	c.run("a", `,"output":"stream"`)
	c.run("b", `,"output":"stream","window":65536`)
	c.want("started", "a")
	for _, id := range []string{"a", "b"} { // the one waits still
		c.send(`{"type":"more","id":%q,"pieces":1}`, id)
		c.want("error", id, NotSent)
	}
	close(free)
	c.want("result", "a")
	c.want("started", "b")
	c.want("result", "b")
}
