// Package session serves many runs over one connection: requests come as lines of
// JSON, replies go as lines of JSON (docs/SESSION.md, docs/session.schema.json).
// It knows nothing of stdin and stdout, so that a command, a test and a program
// that embeds it drive the same server.
//
// Who sends requests is who could run sandglass, and is trusted with what that
// may do: a path of the host's is as good in a request as on a command line. But
// a request may carry text that a model wrote, and a client has mistakes, so no
// line of any form may harm another run or make memory grow:
//
//   - One decoder reads all, strictly. What is wrong is answered, and the next
//     line is read.
//   - A line has at most MaxLine bytes; of a longer one nothing is kept.
//   - Accepted requests hold at most MaxHeld bytes of lines together, whether they
//     wait or run; more is refused as busy.
//   - A run that is collected keeps at most MaxCollected bytes of each stream, and
//     its place among the running ones until its result is written.
//   - There is no queue of replies, see writer.
package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"sandglass/internal/deliver"
	"sandglass/internal/lines"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// The bounds that hello tells.
const (
	MaxLine      = 16 << 20
	MaxHeld      = 64 << 20
	MaxCollected = 16 << 20
)

// Config is what a session is started with.
type Config struct {
	Version   string // that hello tells
	Languages []string
	Defaults  *policy.Defaults
	// Running and Queued bound how many runs there are at once and how many wait.
	Running, Queued int64
	// Run runs one Spec: sandbox.Run, or what prepares more or counts.
	Run func(context.Context, sandbox.Spec) (sandbox.Result, error)
	// Waiting, if there is one, is told how many runs wait for their turn.
	Waiting func(int)
	// Warm is what is kept ready, nil for nothing, and Full is closed when all of
	// that was there for the first time.
	Warm []policy.Warm
	Full <-chan struct{}
}

var (
	// ErrGone is Serve's when out takes no more: its reader went away.
	ErrGone = errors.New("the reader of the replies is gone")
	// ErrStuck is Serve's when nothing is left to do but to write replies, and
	// nobody has taken anything for some seconds.
	ErrStuck = deliver.ErrStuck
)

// Serve answers the requests of in on out until in ends and every run has its
// reply: nil. When ctx ends every run is cancelled and answered, and the error is
// ctx's cause. When it returns, no run is left. A Read that is under way
// then stays so until in is closed.
func Serve(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &server{c: c, w: newWriter(out), ctx: ctx, runs: map[string]*run{},
		changed: make(chan struct{}, 1), asked: make(chan struct{})}
	defer s.w.stop()
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	end := make(chan error, 1)
	go func() {
		s.w.line(c.hello()) // an error ends the session, by the writer itself
		go s.tellFull()
		err := s.read(in)
		close(s.asked)
		end <- err
	}()
	select {
	case err := <-end:
		if err != nil {
			cancel(err)
		}
	case <-s.w.gone:
	case <-ctx.Done():
	}
	if err := s.drain(cancel); err != nil {
		return err
	}
	select {
	case <-s.w.gone: // by the last reply, or where there was nothing to end
		cancel(errors.Join(ErrGone, s.w.failed))
	default:
	}
	return context.Cause(ctx)
}

// tellFull tells once that all that is kept ready is there.
func (s *server) tellFull() {
	select {
	case <-s.c.Full: // never of a session without
		s.w.line(s.c.ready())
	case <-s.ctx.Done():
	}
}

// drain waits for what was accepted: for the sandboxes' ends whatever the reader
// does, and then for as long as the reader takes replies.
func (s *server) drain(cancel context.CancelCauseFunc) error {
	gone := s.w.gone
	for {
		runs, boxes := s.left()
		if runs == 0 {
			return nil
		}
		timer := time.NewTimer(patience)
		select {
		case <-s.changed:
		case <-gone:
			cancel(errors.Join(ErrGone, s.w.failed))
			gone = nil
		case <-timer.C:
			if boxes == 0 && s.w.idle() >= patience {
				return ErrStuck
			}
		}
		timer.Stop()
	}
}

// patience is how long a reader may take nothing once there is nothing to do but
// to write.
var patience = deliver.Patience

// server is one session.
type server struct {
	c   Config
	w   *writer
	ctx context.Context // of every run

	changed chan struct{} // has a token when what is left has changed
	asked   chan struct{} // closed when the last request was read

	mu       sync.Mutex      // guards what follows
	runs     map[string]*run // accepted, whose last reply is not out
	queue    []*run          // those of them that wait
	running  int64           // those that do not
	boxes    int             // those of these whose sandbox is not gone
	ending   int             // those that have given up their place, and write their last bytes
	farewell int             // those that were not started, and are being told
	held     int64
	closing  bool
}

// read answers each line until in ends.
func (s *server) read(in io.Reader) error {
	from := lines.New(in, MaxLine)
	for {
		line, err := from.Next()
		switch {
		case err == lines.ErrTooLong:
			s.reply(&problem{code: TooLarge, what: "the line is longer than " + policy.FormatSize(MaxLine)})
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if len(bytes.Trim(line, " \t\r")) > 0 {
			s.take(line)
			// A run that has just begun goes on here, and another thread reads: it would
			// else wait until that one is awake.
			runtime.Gosched()
		}
	}
}

// take does what one line asks for.
func (s *server) take(line []byte) {
	req, err := decode(line)
	var p *problem
	switch {
	case err != nil:
		p = refused(req.id, req.kind, err)
	case req.kind == typeRun:
		p = s.accept(&run{server: s, request: req, size: int64(len(line)), credit: newWindow(req.window, s.asked)})
	case req.kind == typeCancel:
		p = s.cancel(req.id)
	case req.kind == typeMore:
		p = s.more(&req)
	default:
		p = &problem{id: req.id, code: UnknownType, what: "there is no request of the type " + quote(req.kind) + ": run, cancel, more"}
	}
	if p != nil {
		s.reply(p)
	}
}

// reply writes an error; a writer that has failed has told Serve.
func (s *server) reply(p *problem) { s.w.line(p.line()) }
