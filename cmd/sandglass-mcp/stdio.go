package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// messageBytes is the longest message of a client's: of it a decoder holds several
// copies.
const messageBytes = 8 << 20

// serveStdio serves the one client at the other ends of stdin and stdout, until it
// ends its requests or ctx ends.
func serveStdio(ctx context.Context, t *tools) error {
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- t.server.Run(last, &mcp.IOTransport{Reader: os.Stdin, Writer: keepOpen{os.Stdout}, MaxLineLength: messageBytes})
	}()
	select {
	case err := <-ended:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case <-ctx.Done():
	}
	t.box.close() // the SDK waits for every call, which has its answer then
	end()
	select {
	case <-ended:
	case <-time.After(endTime): // nobody takes the answers
	}
	return nil
}

// keepOpen leaves stdout open for a client that reads its last replies.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
