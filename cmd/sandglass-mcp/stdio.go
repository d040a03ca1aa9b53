package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// messageBytes is the longest message of a client's: of it a decoder holds several
// copies.
const messageBytes = 8 << 20

// serveStdio serves the one client at the other ends of stdin and stdout.
func serveStdio(ctx context.Context, t *tools) error {
	err := t.server.Run(ctx, &mcp.IOTransport{Reader: os.Stdin, Writer: keepOpen{os.Stdout}, MaxLineLength: messageBytes})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// keepOpen leaves stdout open for a client that reads its last replies.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
