package sessionclient

import (
	"slices"
	"strconv"
)

// How much of one run's output waits here until it is taken, in bytes and in
// pieces; a session that knows no windows is not read on past so many pieces.
const (
	windowBytes  = 1 << 20
	windowPieces = 1 << 10
	morePieces   = 16
	lastPieces   = 2 // that a session sends beyond the window: what is left at both streams' ends
)

// window is what is taken of a run's output, and not yet told to the session: it
// sends no more than has room here, so that the reader never waits for a callback.
type window struct {
	most, bytes        int64
	mostPieces, pieces int
}

func (w *window) size() int64 {
	if w == nil {
		return 0
	}
	return w.most
}

// window is a new run's, if it streams and the session knows windows, and how many
// pieces may wait here.
func (c *Client) window(stream bool) (*window, int) {
	if !stream || !slices.Contains(c.Hello.Features, "window") {
		return nil, morePieces
	}
	pieces := int(min(c.Hello.Limits["window_pieces"], windowPieces))
	return &window{most: min(c.Hello.Limits["window_bytes"], windowBytes), mostPieces: pieces}, max(pieces, morePieces) + lastPieces
}

// taken gives room back for a piece, some at a time: a line for each would cost more
// than the piece.
func (c *Client) taken(r *run, bytes int) {
	w := r.window
	if w == nil {
		return
	}
	w.bytes += int64(bytes)
	w.pieces++
	if w.bytes < w.most/4 && w.pieces < w.mostPieces/4 {
		return
	}
	c.write([]byte(`{"type":"more","id":"` + r.id + `","pieces":` + strconv.Itoa(w.pieces) + "}\n"))
	w.bytes, w.pieces = 0, 0
}
