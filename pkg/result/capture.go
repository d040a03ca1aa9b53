package result

import (
	"encoding/base64"
	"io"
	"iter"
	"strings"
	"sync"
	"unicode/utf8"
)

// The sizes of a Capture's chunks: as much again as is there, within these.
const (
	minChunk = 4 << 10
	maxChunk = 256 << 10
)

// Capture is a writer that keeps a stream in memory, each byte once: a buffer
// that doubles, and then a string of it, would be several times what the output
// limit allows, and no limit counts the supervisor's memory. Stream.Attach makes
// it part of a result.
type Capture struct {
	mu     sync.Mutex
	chunks [][]byte
	size   int64
	closed bool
}

// Write keeps all of b until the capture is attached or taken. A stream that
// somebody still writes then has been given up already.
func (c *Capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, io.ErrClosedPipe
	}
	n := len(b)
	for len(b) > 0 {
		last := len(c.chunks) - 1
		if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
			c.chunks = append(c.chunks, make([]byte, 0, min(max(c.size, minChunk), maxChunk)))
			last++
		}
		at := c.chunks[last]
		k := min(cap(at)-len(at), len(b))
		c.chunks[last] = append(at, b[:k]...)
		b, c.size = b[k:], c.size+int64(k)
	}
	return n, nil
}

func (c *Capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// pieces are the bytes in order, cut between characters only.
func (c *Capture) pieces() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var carry []byte // the start of a character that goes on in the next chunk
		for _, b := range c.chunks {
			for len(carry) > 0 && len(b) > 0 && !utf8.FullRune(carry) {
				carry, b = append(carry, b[0]), b[1:]
			}
			if len(carry) > 0 && utf8.FullRune(carry) {
				if !yield(carry) {
					return
				}
				carry = carry[:0]
			}
			cut := len(b) - Begun(b)
			carry = append(carry, b[cut:]...)
			if cut > 0 && !yield(b[:cut]) {
				return
			}
		}
		if len(carry) > 0 {
			yield(carry)
		}
	}
}

// Begun is how many bytes at the end of b are a character's that has more.
func Begun(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// text tells whether all of it is UTF-8.
func (c *Capture) text() bool {
	for p := range c.pieces() {
		if !utf8.Valid(p) {
			return false
		}
	}
	return true
}

// Attach fills in what was kept of the stream, as SetCaptured does, but leaves
// the bytes where they are: Text and Base64 stay empty, and only WriteTo and
// JSON have them. c takes no more after that.
func (s *Stream) Attach(c *Capture) {
	c.close()
	s.Kept, s.Text, s.Base64, s.capture = c.size, "", "", c
}

// Take fills in what was kept of the stream: as text when it is UTF-8, else as
// base64, because JSON would replace the other bytes without a word. c takes no
// more after that.
func (s *Stream) Take(c *Capture) {
	c.close()
	s.Kept, s.Text, s.Base64, s.capture = c.size, "", "", nil
	var b strings.Builder // takes everything
	if c.text() {
		b.Grow(int(c.size))
		for _, p := range c.chunks {
			b.Write(p)
		}
		s.Text = b.String()
		return
	}
	b.Grow(base64.StdEncoding.EncodedLen(int(c.size)))
	c.base64(&b)
	s.Base64 = b.String()
}

func (c *Capture) base64(w io.Writer) {
	e := base64.NewEncoder(base64.StdEncoding, w)
	for _, p := range c.chunks {
		e.Write(p) // an error of w stays with w
	}
	e.Close()
}

// SetCaptured is Take of what is in one piece.
func (s *Stream) SetCaptured(b []byte) { s.Take(&Capture{chunks: [][]byte{b}, size: int64(len(b))}) }

// Captured is what Take was given; an error means that Base64 is not.
func (s *Stream) Captured() ([]byte, error) {
	if s.Base64 != "" {
		return base64.StdEncoding.DecodeString(s.Base64)
	}
	return []byte(s.Text), nil
}
