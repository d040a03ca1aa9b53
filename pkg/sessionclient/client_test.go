package sessionclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const hello = `{"type":"hello","protocol":1,"version":"x","limits":{"line_bytes":1000,"collect_bytes":10,"inline_bytes":10},"features":[],"languages":["sh"]}`

// fake is a program in place of sandglass.
func fake(t *testing.T, script string) Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandglass")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Options{Path: path}
}

func start(t *testing.T, script string) *Client {
	t.Helper()
	c, err := Start(t.Context(), fake(t, "echo '"+hello+"'\n"+script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestNoSession(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3":                                    "sandglass session ended: exit status 3",
		"echo nonsense; exec cat":                   "a reply that cannot be read",
		`echo '{"type":"hello","protocol":2}'`:      "the session speaks protocol 2, and this program 1",
		`echo '{"type":"result","protocol":1}'`:     "the session speaks protocol 1",
		"yes | head -c 3000000 | tr -d '\\n'":       "a reply is longer than 1048576 bytes",
		"echo 'sandglass: error: no' >&2; exit 125": "no",
	} {
		if _, err := Start(t.Context(), fake(t, script)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	var e *Error
	_, err := Start(t.Context(), fake(t, "echo 'sandglass: error: no, here' >&2; echo 'hint: try' >&2; exit 125"))
	if !errors.As(err, &e) || e.What != "no, here" || len(e.Hints) != 1 || e.Hints[0] != "try" || e.ExitCode != 125 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := Start(t.Context(), Options{Path: "/nonexistent/sandglass"}); !errors.As(err, &e) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, fake(t, "exec sleep 1000")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestBrokenSession(t *testing.T) {
	for script, want := range map[string]string{
		`read x; printf '{"type":"resu'`:                                                       "exit status 0",
		`read x; echo '{"type":"error","code":"too_large","error":"x"}'; exec cat`:             "about no run",
		`read x; yes 1234567 | head -c 3000000 >&2; echo 'sandglass: error: gone' >&2; exit 9`: "gone",
		`read x; echo '{"type":"result","id":"1","result":[]}'; exec cat`:                      "cannot be read",
		`read x; echo '{"type":"output","id":"1","stream":"stdout","base64":"!"}'; exec cat`:   "illegal base64",
	} {
		c := start(t, script)
		_, err := c.Run(t.Context(), Request{Command: []string{"true"}}, nil)
		if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
		if _, err := c.Run(t.Context(), Request{Command: []string{"true"}}, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v afterwards", script, err)
		}
	}
}

// TestReplies: an error is the run's; pieces come before the result; what a client
// must ignore it ignores.
func TestReplies(t *testing.T) {
	c := start(t, `read x
echo '{"type":"error","id":"1","to":"cancel","code":"unknown_id","error":"x","hints":[]}'
echo '{"type":"news","id":"1","more":{}}'
echo '{"type":"ready","warm":{"command":1}}'
echo '{"type":"output","id":"9","stream":"stdout","text":"of nobody"}'
echo '{"type":"output","id":"1","stream":"stdout","text":"a"}'
echo '{"type":"output","id":"1","stream":"stderr","base64":"AP8="}'
echo '{"type":"result","id":"1","result":{"outcome":"exited","exit_code":7}}'
read x
echo '{"type":"error","id":"2","to":"run","code":"busy","error":"many","hints":["later"]}'
exec cat >/dev/null`)
	select {
	case <-c.Ready():
		t.Error("ready before anybody said so")
	default:
	}
	var got []string
	res, err := c.Run(t.Context(), Request{Command: []string{"true"}}, func(o Output) { got = append(got, fmt.Sprintf("%s %q", o.Stream, o.Data)) })
	if err != nil || res.ExitCode != 7 || strings.Join(got, ", ") != `stdout "a", stderr "\x00\xff"` {
		t.Errorf("%+v, %v, %q", res, err, got)
	}
	var e *Error
	if _, err := c.Run(t.Context(), Request{Command: []string{"true"}}, nil); !errors.As(err, &e) || e.Code != "busy" || e.What != "many" || e.Hints[0] != "later" {
		t.Errorf("%v", err)
	}
	for code, q := range map[string]Request{"too_large": {Code: strings.Repeat("x", 1000)}, "malformed": {Command: []string{"\xff"}}} {
		if _, err := c.Run(t.Context(), q, nil); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	select {
	case <-c.Ready():
	default:
		t.Error("not ready")
	}
	if c.Hello.Languages[0] != "sh" || c.Hello.Version != "x" {
		t.Errorf("%+v", c.Hello)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestRequestLine(t *testing.T) {
	for want, q := range map[string]Request{
		`{"type":"run","id":"1","command":["a","\u003c"]}`: {Command: []string{"a", "<"}},
		`{"type":"run","id":"1","code":"","lang":"sh","stdin_base64":"","options":{"cpus":0.5},"artifacts":{"inline":5}}`: {
			Lang: "sh", Stdin: []byte{}, Options: map[string]any{"cpus": 0.5}, Inline: 5},
		`{"type":"run","id":"1","lang":"sh","file":"/x","args":["b"],"env":{"A":"b"},"files":[{"path":"p","base64":""},{"path":"q","from":"/q","executable":true}],"artifacts":{"dir":"/d","force":true}}`: {
			Lang: "sh", File: "/x", Args: []string{"b"}, Env: map[string]string{"A": "b"}, Files: []File{{Path: "p"}, {Path: "q", From: "/q", Exec: true}}, Out: "/d", Force: true},
	} {
		if line, err := q.line("1", false, 0); err != nil || string(line) != want+"\n" {
			t.Errorf("%s, %v\nwant %s", line, err, want)
		}
	}
}

// TestRequestOptions: a value means in a request what it means in Go, or is refused by
// its name.
func TestRequestOptions(t *testing.T) {
	wait, none := 500*time.Millisecond, (*string)(nil)
	type text string
	q := Request{Command: []string{"a"}, Options: map[string]any{"timeout": wait, "cpu-time": &wait, "cpus": float32(0.5), "pty": true,
		"memory": text("6m"), "disk": json.Number("100"), "open-files": uint8(9), "image": none, "venv": nil,
		"allow-host": [2]any{"a", text("b")}, "volume": []string(nil)}}
	const want = `{"type":"run","id":"1","command":["a"],"options":{"allow-host":["a","b"],"cpu-time":"500ms","cpus":0.5,"disk":100,` +
		`"memory":"6m","open-files":9,"pty":true,"timeout":"500ms","volume":[]}}`
	if line, err := q.line("1", false, 0); err != nil || string(line) != want+"\n" {
		t.Errorf("%s, %v\nwant %s", line, err, want)
	}
	for want, v := range map[string]any{
		"NaN": math.NaN(), "-Inf": math.Inf(-1), "of type []uint8": []byte("64m"), "of type map[string]int": map[string]int{},
		"of type time.Time": time.Time{}, "a slice with nil in [1]": []any{"a", nil}, "of type struct {}": []struct{}{{}},
	} {
		want = "option memory is " + want + ", and must be a string, a number, a bool, a time.Duration or a slice of these"
		q := Request{Command: []string{"a"}, Options: map[string]any{"memory": v}}
		if line, err := q.line("1", false, 0); err == nil || err.Error() != want {
			t.Errorf("%v: %s, %v, want %s", v, line, err, want)
		}
	}
}

// TestRequestContradicts: of two things one would be done without a word.
func TestRequestContradicts(t *testing.T) {
	for want, q := range map[string]Request{
		"Files[1] has both Data and From":             {Files: []File{{Path: "a"}, {Path: "b", Data: []byte{}, From: "/etc/hostname"}}},
		"Inline is -1, and must be a number of bytes": {Inline: -1},
		"Inline and Out exclude each other":           {Inline: 1, Out: "/x"},
		"Force is for Out: what is there is replaced": {Force: true, Inline: 1},
	} {
		want, q.Command = "the request's "+want, []string{"true"}
		if line, err := q.line("1", false, 0); err == nil || err.Error() != want {
			t.Errorf("%s: %s, %v", want, line, err)
		}
	}
}

// TestRequestText: encoding/json puts U+FFFD for what is no UTF-8, so that the
// session would do something else than what was asked.
func TestRequestText(t *testing.T) {
	type named string
	const bad = "a\xff"
	for name, options := range map[string]map[string]any{
		"name": {bad: 1}, "string": {"workdir": bad}, "list": {"volume": []string{"/a:/b", bad}},
		"any list": {"volume": []any{"/a:/b", bad}}, "named": {"workdir": named(bad)}, "named list": {"volume": []named{bad}},
	} {
		q := Request{Command: []string{"true"}, Options: options}
		if line, err := q.line("1", false, 0); err == nil {
			t.Errorf("%s: %s", name, line)
		}
	}
	good := Request{Command: []string{"true"}, Options: map[string]any{"workdir": "/\u00e9", "cpus": 0.5, "pty": true, "volume": []string{"/a:/b"}, "none": nil}}
	if _, err := good.line("1", false, 0); err != nil {
		t.Error(err)
	}
}

// TestOutputNotTaken: output that is not taken holds up others until its run is
// cancelled, and no longer; and the run does not look whole then.
func TestOutputNotTaken(t *testing.T) {
	enough := errors.New("enough")
	for way, last := range map[string]string{"canceled": "", "not taken": "read z"} {
		t.Run(way, func(t *testing.T) {
			c := start(t, `piece='{"type":"output","id":"1","stream":"stdout","text":"a"}'
read x; echo "$piece"
while read y; do case "$y" in *'"run"'*) break; esac; done
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "$piece"; done
echo '{"type":"result","id":"2","result":{"outcome":"exited","exit_code":7}}'
`+last+`
echo '{"type":"result","id":"1","result":{"outcome":"canceled"}}'
exec cat >/dev/null`)
			if c.held = 200 * time.Millisecond; way == "canceled" {
				c.held = time.Hour
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			begun, free, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			release := sync.OnceFunc(func() { close(free) })
			late := func() { cancel(errors.New("late")); release() } // or nobody would ever say what is wrong
			defer time.AfterFunc(30*time.Second, late).Stop()
			taken := 0
			go func() {
				_, err := c.Run(ctx, Request{Command: []string{"yes"}}, func(Output) {
					if taken++; taken == 1 {
						close(begun)
					}
					<-free
				})
				over <- err
			}()
			<-begun
			if way == "canceled" {
				cancel(enough)
			}
			if res, err := c.Run(t.Context(), Request{Command: []string{"true"}}, nil); err != nil || res.ExitCode != 7 {
				t.Errorf("%+v, %v", res, err)
			}
			release()
			err := <-over
			var lost *Error
			if way == "canceled" && (err != enough || taken != 1) {
				t.Errorf("%v, %d taken", err, taken)
			}
			if way != "canceled" && (!errors.As(err, &lost) || lost.Code != "canceled" || !strings.HasPrefix(lost.What, "nobody took") || taken != 17) {
				t.Errorf("%v, %d taken", err, taken)
			}
		})
	}
}
