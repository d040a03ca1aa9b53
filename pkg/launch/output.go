package launch

import (
	"errors"
	"io"
	"os"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// chunk is one read of the program's output; a pipe holds no more by default.
const chunk = 64 << 10

// pump passes one stream on up to limit bytes and drops the rest, so that the
// supervisor's memory does not depend on what the program writes. It ends at
// end of file, or when the caller's side does not take any more: then the pipe
// is closed and the program meets SIGPIPE, as it would without us.
type pump struct {
	from  *os.File
	to    io.Writer
	limit int64
	full  func() // called once when the limit is passed
	count result.Stream
	err   error // why the caller's side takes no more, nil for a reader that went away
	done  chan struct{}
}

func startPump(from *os.File, to io.Writer, limit int64, full func()) *pump {
	p := &pump{from: from, to: to, limit: limit, full: full, done: make(chan struct{})}
	go p.run()
	return p
}

func (p *pump) run() {
	defer close(p.done)
	defer p.from.Close()
	buf := make([]byte, chunk)
	for {
		n, err := p.from.Read(buf)
		if n > 0 && !p.pass(buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// pass counts data and writes what is within the limit. It says whether the
// caller still listens.
func (p *pump) pass(data []byte) bool {
	p.count.Bytes += int64(len(data))
	room := p.limit - p.count.Kept
	if int64(len(data)) > room {
		data = data[:room]
		if !p.count.Truncated {
			p.count.Truncated = true
			p.full()
		}
	}
	if len(data) == 0 {
		return true
	}
	n, err := p.to.Write(data)
	p.count.Kept += int64(n)
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, io.ErrClosedPipe) {
		p.err = err
	}
	return err == nil
}
