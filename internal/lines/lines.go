// Package lines reads lines of bounded length from who may send lines of any.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Reader reads lines of bounded length.
type Reader struct {
	from *bufio.Reader
	most int
	buf  []byte
}

// ErrTooLong is a line that was longer than it may be. The next one can be read.
var ErrTooLong = errors.New("the line is too long")

// keepBuffer is how large the memory for the next line may stay.
const keepBuffer = 1 << 20

// New reads lines of at most most bytes.
func New(in io.Reader, most int) *Reader {
	return &Reader{from: bufio.NewReaderSize(in, 64<<10), most: most}
}

// Next is the next line without its newline, good until the next call. One that is
// too long is read to its newline, and none of it is kept: ErrTooLong. The last
// one may lack the newline.
func (l *Reader) Next() ([]byte, error) {
	if cap(l.buf) > keepBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	tooLong := false
	for {
		part, err := l.from.ReadSlice('\n')
		end := err != bufio.ErrBufferFull
		if end {
			part = bytes.TrimSuffix(part, []byte("\n"))
		}
		if tooLong = tooLong || len(l.buf)+len(part) > l.most; tooLong {
			l.buf = nil
		} else {
			l.buf = append(l.buf, part...)
		}
		switch {
		case !end:
			continue
		case tooLong && (err == nil || err == io.EOF):
			return nil, ErrTooLong // an end of file comes again
		case err == nil || err == io.EOF && len(l.buf) > 0:
			return l.buf, nil
		}
		return nil, err
	}
}
