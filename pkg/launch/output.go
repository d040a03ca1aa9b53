package launch

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"sandglass/internal/deliver"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

const (
	// chunk is one read of the program's output; a pipe holds no more by default.
	chunk = 64 << 10
	// few is the first read, which for most programs is the only one: a chunk is
	// sixteen pages to clear and fault in, twice, while the program starts.
	few = 4 << 10
	// flood is how much of what is dropped one system call takes: the largest pipe
	// that an ordinary user can make by default.
	flood = 1 << 20
)

// readerTime is how long the caller's side may take nothing after the run's
// end. At most a pipe and a chunk are left to take then. A reader that is stuck
// would else keep the run from ending, whatever its time limit.
var readerTime = deliver.Patience

// pump passes one stream on up to limit bytes and drops the rest, so that the
// supervisor's memory does not depend on what the program writes. It ends at
// end of file, or when the caller's side does not take any more: then the pipe
// is closed and the program meets SIGPIPE, as it would without us.
type pump struct {
	from  *os.File
	to    io.Writer
	limit int64
	full  func() // called once when the limit is passed
	tty   bool   // from is a terminal's master
	done  chan struct{}

	mu      sync.Mutex // guards what follows: a pump that is stuck is left behind
	count   result.Stream
	err     error     // why the caller's side takes no more, nil for a reader that went away
	writing bool      // the caller's side has data to take
	moved   time.Time // when it last took any
}

func startPump(from *os.File, to io.Writer, limit int64, full func()) *pump {
	p := newPump(from, to, limit, full)
	go p.run()
	return p
}

func newPump(from *os.File, to io.Writer, limit int64, full func()) *pump {
	return &pump{from: from, to: to, limit: limit, full: full, done: make(chan struct{})}
}

func (p *pump) run() {
	defer close(p.done)
	defer p.from.Close()
	buf := make([]byte, few)
	for {
		n, err := p.from.Read(buf)
		if n > 0 && !p.pass(buf[:n]) {
			return
		}
		if err != nil {
			p.lost(err)
			return
		}
		if p.count.Truncated {
			p.drop()
			return
		}
		if n == few && len(buf) == few {
			buf = make([]byte, chunk)
		}
	}
}

// lost notes that the stream has ended before its end of file: what the caller
// got is not all of it.
func (p *pump) lost(err error) {
	// EIO is a terminal's end of file: nobody has it open any more.
	if err == io.EOF || errors.Is(err, os.ErrClosed) || p.tty && errors.Is(err, unix.EIO) {
		return
	}
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
}

// pass counts data and writes what is within the limit. It says whether the
// caller still listens.
func (p *pump) pass(data []byte) bool {
	if room := p.add(int64(len(data))); int64(len(data)) > room {
		data = data[:room]
	}
	if len(data) == 0 {
		return true
	}
	n, err := deliver.Write(p.to, data)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing, p.moved = false, time.Now()
	p.count.Kept += int64(n)
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, io.ErrClosedPipe) {
		p.err = err
	}
	return err == nil
}

// add counts n bytes of the program's and says how many may still be kept.
func (p *pump) add(n int64) (room int64) {
	p.mu.Lock()
	p.count.Bytes += n
	room = p.limit - p.count.Kept
	first := n > room && !p.count.Truncated
	p.count.Truncated = p.count.Truncated || first
	p.writing = n > 0 && room > 0
	p.mu.Unlock()
	if first {
		p.full()
	}
	return room
}

// drop counts the rest without looking at it: the pages go from the pipe to
// /dev/null. The program can fill a pipe without copying (sendfile, splice);
// if each byte of a flood were copied here, it would have CPU time of the
// supervisor's that no limit counts.
func (p *pump) drop() {
	buf := make([]byte, chunk)
	take := func() (int64, error) {
		n, err := p.from.Read(buf)
		return int64(n), err
	}
	if p.tty {
		take = p.slowly(buf)
	} else if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		defer null.Close()
		from, to := int(p.from.Fd()), int(null.Fd())
		unix.SetNonblock(from, false)
		take = func() (int64, error) {
			return unix.Splice(from, nil, to, nil, flood, 0)
		}
	}
	for {
		n, err := take()
		if n <= 0 && err != unix.EINTR {
			return
		}
		p.add(max(n, 0))
	}
}

// settle waits until the caller has what was written before the end, and says
// what became of the stream. It gives up on a reader that is stuck, and on a
// pipe that somebody outside still holds open.
func (p *pump) settle(end time.Time) (result.Stream, error) {
	for {
		p.mu.Lock()
		last := end
		if p.moved.After(end) {
			last = p.moved
		}
		p.mu.Unlock()
		left := time.Until(last.Add(readerTime))
		if left <= 0 {
			break
		}
		timer := time.NewTimer(left)
		select {
		case <-p.done:
			timer.Stop()
			return p.count, p.err
		case <-timer.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && p.writing {
		return p.count, deliver.ErrStuck
	}
	return p.count, p.err
}
