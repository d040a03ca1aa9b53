// Package deliver hands bytes to a descriptor of the caller's, of which nobody
// knows what is behind it: a reader that is late, stuck or gone, or a pipe that
// others have made non-blocking.
package deliver

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is how long a reader may take nothing. One that waits for our end
// before it reads would else wait for ever, whenever a program makes what we
// write longer than a pipe holds.
const Patience = 10 * time.Second

// ErrStuck says that Patience is over.
var ErrStuck = errors.New("the reader takes nothing any more")

// page is the most that a pipe takes at once or not at all (PIPE_BUF). Of a
// longer write nobody sees that a slow reader takes it bit by bit.
const page = 4 << 10

// Writer writes as long as the reader takes something within Patience. After an
// error it writes no more, and what it was given must stay as it is: a write
// that is stuck cannot be taken back.
type Writer struct {
	to     io.Writer
	most   int
	pieces chan []byte
	ends   chan end
	timer  *time.Timer
	failed error
}

type end struct {
	n   int
	err error
}

// NewWriter is a Writer to f. Close does not close f.
func NewWriter(f *os.File) *Writer {
	most := int(^uint(0) >> 1) // a line that is appended to a file stays in one piece
	if info, err := f.Stat(); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0 {
		most = page
	}
	return newWriter(f, most)
}

func newWriter(to io.Writer, most int) *Writer {
	t := time.NewTimer(Patience)
	t.Stop()
	w := &Writer{to: to, most: most, pieces: make(chan []byte), ends: make(chan end, 1), timer: t}
	go func() {
		for b := range w.pieces {
			n, err := Write(to, b)
			w.ends <- end{n, err}
		}
	}()
	return w
}

// Write writes all of b.
func (w *Writer) Write(b []byte) (int, error) {
	n := 0
	for n < len(b) && w.failed == nil {
		w.pieces <- b[n:min(n+w.most, len(b))]
		w.timer.Reset(Patience)
		select {
		case e := <-w.ends:
			n, w.failed = n+e.n, e.err
		case <-w.timer.C:
			w.failed = ErrStuck
		}
	}
	w.timer.Stop()
	return n, w.failed
}

// Close lets go of the Writer, which writes no more.
func (w *Writer) Close() error {
	close(w.pieces)
	w.failed = os.ErrClosed
	return nil
}

// All writes all of from to f.
func All(f *os.File, from io.WriterTo) error {
	w := NewWriter(f)
	defer w.Close()
	_, err := from.WriteTo(w)
	return err
}

// Write writes data, however long that takes. A descriptor that some other
// process of the caller's has made non-blocking (node and ssh do that to a
// terminal that all of them share) is waited for.
func Write(to io.Writer, data []byte) (n int, err error) {
	for {
		m, err := to.Write(data[n:])
		n += max(m, 0)
		f, ok := to.(*os.File)
		if !ok || !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
		if err := waitRoom(f); err != nil {
			return n, err
		}
	}
}

// waitRoom does not use Fd, which may change the flags of the description.
func waitRoom(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.EINTR
		for failed == unix.EINTR {
			_, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// WaitNoReader waits until nobody reads what is written to f. Without it a server
// whose client died would run on until its next reply.
func WaitNoReader(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		for fds[0].Revents == 0 {
			if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
				return
			}
		}
	})
}
