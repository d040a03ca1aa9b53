package main

import (
	"context"
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

	mu     sync.Mutex
	client *sessionclient.Client
	closed bool
}

func (b *box) get(ctx context.Context) (*sessionclient.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client != nil {
		select {
		case <-b.client.Done():
			b.client = nil
		default:
			return b.client, nil
		}
	}
	if b.closed {
		return nil, sessionclient.ErrClosed
	}
	c, err := sessionclient.Start(ctx, sessionclient.Options{Path: b.path, Args: b.args, Env: withoutToken(os.Environ())})
	if err == nil {
		b.client = c
	}
	return c, err
}

// withoutToken keeps the bearer token from every other process.
func withoutToken(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, tokenVariable+"=") })
}

// close ends every run, and waits until its sandbox is gone.
func (b *box) close() {
	b.mu.Lock()
	c := b.client
	b.closed = true
	b.mu.Unlock()
	if c != nil {
		c.Close()
	}
}
