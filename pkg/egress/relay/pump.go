package relay

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// pieceMax is the most that one call moves. The pipe holds less of small packets
// and more of large ones, since it counts pages.
const pieceMax = 1 << 20

var errSpent = errors.New("the bytes of the run are used up")

// pump moves bytes from one socket to the other through a pipe, in the kernel.
type pump struct {
	to           *net.TCPConn
	source, sink syscall.RawConn
	pipe         [2]int
	want         int // bytes to move by the next call
	moved        int // by the last one
	err          error
	// Made once: a closure for each piece would be garbage for each piece.
	fill, drain func(uintptr) bool
}

func newPump(from, to *net.TCPConn) (*pump, error) {
	p := &pump{to: to}
	var err error
	if p.source, err = from.SyscallConn(); err != nil {
		return nil, err
	}
	if p.sink, err = to.SyscallConn(); err != nil {
		return nil, err
	}
	if err := unix.Pipe2(p.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	p.fill = func(fd uintptr) bool { return p.refill(int(fd)) }
	p.drain = func(fd uintptr) bool { return p.splice(p.pipe[0], int(fd)) }
	return p, nil
}

// close is for when nobody is in run.
func (p *pump) close() {
	unix.Close(p.pipe[0])
	unix.Close(p.pipe[1])
}

// splice is false when the socket is to be waited for. The pipe never is: it is
// empty before it is filled, and holds what is wanted when it is drained.
func (p *pump) splice(from, to int) bool {
	for {
		n, err := unix.Splice(from, nil, to, nil, p.want, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err == unix.EINTR {
			continue
		}
		p.moved, p.err = int(max(n, 0)), err
		return err != unix.EAGAIN
	}
}

// refill is splice past urgent data. In front of an urgent byte splice stops: it
// says that nothing is there, for ever, or the end of file when that has come
// behind the byte. The other end would then hang, or take a part for the whole.
func (p *pump) refill(fd int) bool {
	ready := p.splice(fd, p.pipe[1])
	if p.moved > 0 || p.err != nil && p.err != unix.EAGAIN {
		return ready
	}
	if mark, err := unix.IoctlGetInt(fd, unix.SIOCATMARK); err != nil || mark == 0 {
		return ready
	}
	var b [1]byte
	n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT)
	if n == 1 {
		n, err = unix.Write(p.pipe[1], b[:])
	}
	p.moved, p.err = max(n, 0), err
	return err != unix.EAGAIN
}

// run moves bytes until the end of file, which it passes on. What is read beyond
// the run's budget is thrown away: a bound on what leaves is exact.
func (p *pump) run(c *conn, count *atomic.Int64, left *budget) error {
	piece := c.s.rate.piece()
	for {
		p.want = piece
		if err := p.call(p.source.Read, p.fill); err != nil {
			return err
		}
		got := p.moved
		if got == 0 {
			// First: who sees the end of file and ends in turn finds it counted, and
			// of the last one the verdict: the program's end may be the run's.
			if c.ended.Add(1) == 2 {
				c.cut(result.Closed, nil)
				return nil
			}
			return p.to.CloseWrite()
		}
		may := left.take(got)
		if !c.s.rate.wait(c.ctx, may) {
			return net.ErrClosed
		}
		c.last.set(time.Now())
		if err := p.drainAll(c, may, count); err != nil {
			return err
		}
		if may < got {
			return errSpent
		}
	}
}

func (p *pump) drainAll(c *conn, n int, count *atomic.Int64) error {
	for n > 0 {
		p.want = n
		if err := p.call(p.sink.Write, p.drain); err != nil {
			return err
		}
		if p.moved == 0 {
			return unix.EPIPE // never seen: our own end of the pipe is open
		}
		n -= p.moved
		count.Add(int64(p.moved))
		c.last.set(time.Now())
	}
	return nil
}

// call waits for the socket and makes one call.
func (p *pump) call(wait func(func(uintptr) bool) error, f func(uintptr) bool) error {
	if err := wait(f); err != nil {
		return err
	}
	return p.err
}

// awaitReset is what is left to do in a direction that has come to its end while
// the other goes on: a peer that is gone altogether is told to the other one, as
// it would be without us, and not when the next byte meets it.
func (p *pump) awaitReset(c *conn) {
	var gone error
	err := p.source.Read(func(fd uintptr) bool {
		n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && n != 0 {
			err = unix.Errno(n)
		}
		gone = err
		return err != nil
	})
	if err == nil {
		err = gone
	}
	c.cut(result.Reset, err)
}
