package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"sandglass/pkg/sessionclient"
)

// box is the session that the runs go to. One that has ended, because somebody
// killed it, is started again for the next call.
type box struct {
	path string
	args []string

	ctx  context.Context // of every start
	stop context.CancelFunc

	mu      sync.Mutex // never held while anything is waited for
	current *start     // nil for none
	closed  bool
}

// start is a session that is being started, or was.
type start struct {
	done   chan struct{} // closed when the rest is known
	client *sessionclient.Client
	err    error
}

// errEnds is what a call gets that comes when the server ends.
var errEnds = errors.New("the server ends: nothing was run")

func newBox(path string, args []string) *box {
	b := &box{path: path, args: args}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// get is the session, once it is there. It is started once for all who wait, and for
// none of them: one who hangs up does not end it for the others.
func (b *box) get(ctx context.Context) (*sessionclient.Client, error) {
	s := b.begin()
	if s == nil {
		return nil, errEnds
	}
	select {
	case <-s.done:
		return s.client, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin is the start that there is, or a new one where that has failed or its session
// has ended; nil once the box is closed.
func (b *box) begin() *start {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	if b.current == nil || b.current.over() {
		b.current = &start{done: make(chan struct{})}
		go b.run(b.current)
	}
	return b.current
}

func (b *box) run(s *start) {
	defer close(s.done)
	s.client, s.err = sessionclient.Start(b.ctx, sessionclient.Options{Path: b.path, Args: b.args, Env: withoutToken(os.Environ())})
	if b.ctx.Err() != nil && s.err != nil {
		s.err = errEnds
	}
}

// over says whether another start is wanted.
func (s *start) over() bool {
	select {
	case <-s.done:
	default:
		return false
	}
	if s.err != nil {
		return true
	}
	select {
	case <-s.client.Done():
		return true
	default:
		return false
	}
}

// withoutToken keeps the bearer token from every other process.
func withoutToken(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, tokenVariable+"=") })
}

// close ends every run, and waits until its sandbox is gone. A start that is under way
// ends too.
func (b *box) close() {
	b.mu.Lock()
	s := b.current
	b.closed = true
	b.mu.Unlock()
	b.stop()
	if s == nil {
		return
	}
	if <-s.done; s.client != nil {
		s.client.Close()
	}
}
