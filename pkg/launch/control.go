package launch

import (
	"os"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// maxRights is how many descriptors init may send: the program's pidfd and the
// artefact directory.
const maxRights = 2

// message is one report of init's with the descriptors that came with it.
type message struct {
	report *wire.Report
	fds    []int
	err    error // io.EOF when init is gone
}

// listen reads init's reports until it is gone. The channel has room for all
// of them, so the reader never outlives the socket.
func listen(control *os.File) <-chan message {
	ch := make(chan message, 4)
	go func() {
		defer close(ch)
		for range cap(ch) {
			m := receive(control)
			ch <- m
			if m.err != nil {
				return
			}
		}
	}()
	return ch
}

// receive reads one frame. Descriptors travel with its first byte.
func receive(control *os.File) message {
	first := &firstRead{fd: int(control.Fd())}
	t, body, err := wire.ReadFrame(first, wire.MaxReport)
	if err != nil {
		closeAll(first.fds)
		return message{err: err}
	}
	r, err := wire.DecodeReport(t, body)
	if err != nil {
		closeAll(first.fds)
		return message{err: err}
	}
	return message{report: r, fds: first.fds}
}

// firstRead is a reader that takes up descriptors on its way.
type firstRead struct {
	fd  int
	fds []int
}

func (r *firstRead) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxRights))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(r.fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if oobn > 0 {
			r.take(oob[:oobn])
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return 0, wire.ErrMalformed
		}
		if n == 0 {
			return 0, os.ErrClosed
		}
		return n, nil
	}
}

func (r *firstRead) take(oob []byte) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			r.fds = append(r.fds, fds...)
		}
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// sendFiles passes descriptors to init, in order.
func sendFiles(control *os.File, files []*os.File) error {
	for len(files) > 0 {
		n := min(len(files), wire.MaxFiles)
		fds := make([]int, n)
		for i := range fds {
			fds[i] = int(files[i].Fd())
		}
		err := unix.Sendmsg(int(control.Fd()), wire.Frame(wire.TypeFiles, nil), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		if err == unix.EPIPE || err == unix.ECONNRESET {
			return nil // init is gone; listen says so, and what its last words were
		}
		if err != nil {
			return os.NewSyscallError("sendmsg", err)
		}
		files = files[n:]
	}
	return nil
}

// send writes a frame without waiting for init to read it: a plan that is
// larger than the socket's buffer goes on in the background.
func send(control *os.File, frame []byte) {
	n, err := unix.SendmsgN(int(control.Fd()), frame, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err == unix.EAGAIN {
		n = 0
	} else if err != nil {
		return // init is gone; listen says so
	}
	rest := frame[n:]
	conn, err := control.SyscallConn()
	if len(rest) == 0 || err != nil {
		return
	}
	// Control keeps the number from being another descriptor's when the run ends
	// meanwhile: the plan must not go to somebody else's init.
	go conn.Control(func(fd uintptr) {
		for len(rest) > 0 {
			n, err := unix.SendmsgN(int(fd), rest, nil, nil, unix.MSG_NOSIGNAL)
			if err != nil && err != unix.EINTR {
				return
			}
			rest = rest[max(n, 0):]
		}
	})
}
