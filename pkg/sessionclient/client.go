// Package sessionclient runs programs through a "sandglass session" process of its
// own: docs/SESSION.md. It is for Go programs that should not be a sandbox's PID 1
// themselves, because they link C or much else; those that may be call
// pkg/sandbox. It links nothing that runs sandboxes.
//
//	c, err := sessionclient.Start(ctx, sessionclient.Options{Args: []string{"--memory", "128m"}})
//	defer c.Close()
//	res, err := c.Run(ctx, sessionclient.Request{Lang: "python", Code: "print(1)"}, nil)
//
// Text that a model wrote belongs into Code, Stdin, Args and the text of Files.
// Everything else names things of the host's, and is the caller's to choose.
package sessionclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandglass/pkg/result"
)

// Protocol is the version that is spoken.
const Protocol = 1

// Options say how a session is started.
type Options struct {
	Path string   // of the binary; "" is sandglass on PATH
	Args []string // flags of sandglass session
	Env  []string // of the session, nil for this process's own; programs see none of it
}

// Error is a run, or a session, that sandglass would not or could not do. Error()
// is What alone: a program for people prints the Hints too, which errors.As leads to.
// They and What speak of flags, as those of a result do: --memory 6m is
// Options["memory"] of a request, --out its Out, and --allow-mount, --allow-degraded
// and --cgroup-parent belong into the Args of the session.
type Error struct {
	Code     string // of docs/SESSION.md, e.g. refused, busy; "" for a session that did not start
	What     string
	Hints    []string
	ExitCode int
}

func (e *Error) Error() string { return e.What }

// ErrClosed is joined into the error of runs whose session has ended.
var ErrClosed = errors.New("the session has ended")

// How long a session may take for its first line and for its end.
const patience = 60 * time.Second

// How long a session that has not said hello may take to end when it is told to.
const leaving = 5 * time.Second

// How long a run whose output is not taken may hold up the replies of others, in a
// session that knows no windows: the program chooses how much it writes, and must
// not choose what else is answered.
const held = 10 * time.Second

// Client is one session. Its methods may be called from many goroutines. One that is
// not closed ends with this process.
type Client struct {
	Hello Hello

	held   time.Duration
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *tail
	ready  chan struct{} // closed when all that is kept ready was there
	quit   chan struct{} // closed by Close: output that nobody takes is not waited with
	ended  chan struct{} // closed when the process is gone

	writing sync.Mutex // one line at a time

	mu      sync.Mutex // guards what follows
	runs    map[string]*run
	next    int
	dead    error
	closing bool
}

// run is one that has no last reply yet.
type run struct {
	id      string
	window  *window // nil for none
	pieces  chan Output
	stop    <-chan struct{} // closed when the caller has cancelled it
	gone    chan struct{}   // closed when nobody takes pieces any more
	lost    chan struct{}   // closed when it held up others for too long
	done    chan struct{}   // closed behind the last reply
	dropped bool            // not all of its output was given
	last    reply
	err     error
}

// Start starts a session and waits for its hello. ctx bounds that wait alone: a session
// that has said none by then is gone when Start returns, with what it had begun to make.
func Start(ctx context.Context, o Options) (*Client, error) {
	path := o.Path
	if path == "" {
		path = "sandglass"
	}
	c := &Client{held: held, cmd: exec.Command(path, append([]string{"session"}, o.Args...)...), stderr: &tail{},
		ready: make(chan struct{}), quit: make(chan struct{}), ended: make(chan struct{}), runs: map[string]*run{}}
	c.cmd.Env, c.cmd.Stderr, c.cmd.WaitDelay = o.Env, c.stderr, 5*time.Second
	// Ctrl-C is for this process, which cancels what it wants to. The session ends
	// with its pipes, whatever becomes of this process.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out io.ReadCloser
	var err error
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		out, err = c.cmd.StdoutPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, &Error{What: "starting " + path + ": " + err.Error(), Hints: []string{"sandglass doctor"}, ExitCode: 125}
	}
	greeted := make(chan struct{})
	go c.read(out, greeted)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-greeted:
		return c, nil
	case <-c.ended:
	case <-timer.C:
		err = &Error{What: path + " session says no hello"}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.abandon()
	if err == nil {
		err = c.dead
	}
	return nil, err
}

// Run runs one program and returns when its sandbox is gone. A result comes with a
// nil error whatever the program did; an error is an *Error, or the session's end,
// or ctx's, which cancels the run. output gets each piece as it comes, from this
// goroutine, and the result has none then. While it does not return, 1 MiB waits;
// then the program is held up, and nobody else. A session without the feature
// "window" holds up its other replies too; when there are others there, and output
// has not returned for 10 seconds, this run is cancelled.
func (c *Client) Run(ctx context.Context, q Request, output func(Output)) (result.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return result.Result{}, err
	}
	w, room := c.window(output != nil)
	r := &run{window: w, pieces: make(chan Output, room), stop: ctx.Done(), gone: make(chan struct{}), lost: make(chan struct{}), done: make(chan struct{})}
	defer close(r.gone)
	if err := c.submit(q, r, output != nil); err != nil {
		return result.Result{}, err
	}
	// Not by what follows: output may not return.
	defer context.AfterFunc(ctx, func() { c.cancel(r.id) })()
	for over := false; !over; {
		select {
		case p := <-r.pieces:
			output(p)
			c.taken(r, len(p.Data))
		case <-r.done:
			over = true
		}
	}
	for len(r.pieces) > 0 {
		output(<-r.pieces)
	}
	res, err := r.outcome()
	if ctx.Err() != nil && (err != nil || res.Outcome == result.Canceled || r.dropped) {
		err = context.Cause(ctx) // unless the program was quicker
	} else if err == nil && r.dropped && c.closed() {
		err = ErrClosed
	} else if err == nil && r.dropped {
		err = &Error{Code: "canceled", What: fmt.Sprintf("nobody took the run's output for %v, and other runs waited for it: it was cancelled", c.held)}
	}
	return res, err
}

func (r *run) outcome() (result.Result, error) {
	switch {
	case r.err != nil:
		return result.Result{}, r.err
	case r.last.Type == "error":
		return result.Result{}, &Error{r.last.Code, r.last.Error, r.last.Hints, r.last.ExitCode}
	}
	return r.last.Result, nil
}

// submit sends a request and has its replies go to r.
func (c *Client) submit(q Request, r *run, stream bool) error {
	c.mu.Lock()
	c.next++
	r.id = strconv.Itoa(c.next)
	c.mu.Unlock()
	line, err := q.line(r.id, stream, r.window.size())
	if err != nil {
		return &Error{Code: "malformed", What: err.Error()}
	}
	if most := c.Hello.Limits["line_bytes"]; int64(len(line)) > most {
		// The session could not say whose it was.
		return &Error{Code: "too_large", What: fmt.Sprintf("the request has %d bytes, and may have %d", len(line), most)}
	}
	c.mu.Lock()
	if c.dead == nil && c.closing {
		c.dead = ErrClosed
	}
	if err := c.dead; err != nil {
		c.mu.Unlock()
		return err
	}
	c.runs[r.id] = r
	c.mu.Unlock()
	c.write(line) // an error is the session's end, which the reader sees
	return nil
}

func (c *Client) write(line []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.in.Write(line)
}

func (c *Client) cancel(id string) { c.write([]byte(`{"type":"cancel","id":"` + id + `"}` + "\n")) }

// Ready is closed when all sandboxes that the session keeps ready have been there,
// and never for a session without --warm.
func (c *Client) Ready() <-chan struct{} { return c.ready }

// Done is closed when the session has ended.
func (c *Client) Done() <-chan struct{} { return c.ended }

// Close cancels what runs, and returns when the session and all of its sandboxes
// are gone.
func (c *Client) Close() error {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	var ids []string
	for id := range c.runs {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	if first {
		close(c.quit)
		go func() { // a session that reads nothing is killed below
			for _, id := range ids {
				c.cancel(id)
			}
			c.writing.Lock()
			c.in.Close()
			c.writing.Unlock()
		}()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill()
	}
	if state := c.cmd.ProcessState; state != nil && !state.Success() {
		return &Error{What: "sandglass session: " + state.String(), ExitCode: state.ExitCode()}
	}
	return nil
}

func (c *Client) closed() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

// abandon ends a session that has not said hello. It may be making the sandboxes that
// it keeps ready: SIGKILL would leave their control groups to the next start.
func (c *Client) abandon() {
	c.in.Close()
	c.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(leaving)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill()
	}
}

func (c *Client) kill() {
	c.cmd.Process.Signal(os.Kill)
	<-c.ended
}

// why is the error of everybody who waits when the process has ended.
func (c *Client) why(greeted bool) error {
	e := &Error{ExitCode: c.cmd.ProcessState.ExitCode()}
	said := c.stderr.lines()
	for _, l := range said {
		if what, ok := strings.CutPrefix(l, "sandglass: error: "); ok && e.What == "" {
			e.What = what
		} else if hint, ok := strings.CutPrefix(l, "hint: "); ok {
			e.Hints = append(e.Hints, hint)
		}
	}
	if e.What != "" && !greeted {
		return e
	}
	if e.What == "" {
		e.What = strings.Join(append([]string{"sandglass session ended: " + c.cmd.ProcessState.String()}, said[max(0, len(said)-3):]...), "; ")
	}
	return errors.Join(ErrClosed, e)
}
