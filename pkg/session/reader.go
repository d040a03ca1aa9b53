package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads lines of bounded length.
type lines struct {
	from *bufio.Reader
	most int
	buf  []byte
}

var errTooLong = errors.New("the line is too long")

// keepBuffer is how large the memory for the next line may stay.
const keepBuffer = 1 << 20

func newLines(in io.Reader, most int) *lines {
	return &lines{from: bufio.NewReaderSize(in, 64<<10), most: most}
}

// next is the next line without its newline, good until the next call. One that is
// too long is read to its newline, and none of it is kept: errTooLong. The last
// one may lack the newline.
func (l *lines) next() ([]byte, error) {
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
			return nil, errTooLong // an end of file comes again
		case err == nil || err == io.EOF && len(l.buf) > 0:
			return l.buf, nil
		}
		return nil, err
	}
}
