package main

import (
	"context"
	"os"
	"time"
)

// messageBytes is the longest message of a client's: of it a decoder holds several
// copies.
const messageBytes = 8 << 20

// lastCalls is how long calls may go on after the end of the requests. Clients end
// a server by closing its stdin, and wait: a run without end must not outlive that.
const lastCalls = 30 * time.Second

// serveStdio serves the one client at the other ends of stdin and stdout, until it
// ends its requests and has its answers, or ctx ends.
func serveStdio(ctx context.Context, t *tools) error {
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w := newWire(os.Stdin, os.Stdout, lastCalls)
	ended := make(chan error, 1)
	go func() { ended <- t.server.Run(last, w) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	case <-w.overdue:
	}
	w.stop()
	t.box.close() // every call has its answer then
	select {
	case err := <-ended:
		return err
	case <-time.After(endTime): // nobody takes the answers
	}
	return nil
}
