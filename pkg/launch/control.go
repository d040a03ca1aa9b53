package launch

import (
	"os"
	"runtime"
	"time"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// maxReports is how many frames init sends at most, and the end of file.
const maxReports = 8

// maxRights is how many descriptors init may send at once: the program's pidfd
// and its listener, or the three of a text's place. With Network they are
// maxSockets: the resolver's and one for each port.
const (
	maxRights  = 3
	maxSockets = 1 + wire.MaxPorts
)

// message is one report of init's with the descriptors that came with it.
type message struct {
	report *wire.Report
	fds    []int
	err    error // io.EOF when init is gone
}

// listen reads init's reports until it is gone. The channel has room for all
// of them, so the reader never outlives the socket.
func listen(control *os.File) <-chan message {
	ch := make(chan message, maxReports)
	go func() {
		defer close(ch)
		for range cap(ch) {
			m := receive(control)
			ch <- m
			if m.err != nil {
				return
			}
			runtime.Gosched() // who waits for it goes on here, before this thread waits for the next
		}
	}()
	return ch
}

// pollable makes a file of fd for which goroutines wait without a thread of their
// own, where the runtime can do that: a sandbox has four such, and each thread
// costs its start and its end, and a session has many sandboxes. The number is
// good for calls that do not wait.
func pollable(fd int, name string) *os.File {
	unix.SetNonblock(fd, true)
	f := os.NewFile(uintptr(fd), name)
	if f.SetDeadline(time.Time{}) != nil {
		unix.SetNonblock(fd, false)
	}
	return f
}

// receive reads one frame.
func receive(control *os.File) message {
	conn, err := control.SyscallConn()
	if err != nil {
		return message{err: err}
	}
	t, body, fds, err := wire.ReadFrameBy(func(p, oob []byte) (n, oobn, flags int, err error) {
		closed := conn.Read(func(fd uintptr) bool {
			n, oobn, flags, _, err = unix.Recvmsg(int(fd), p, oob, unix.MSG_CMSG_CLOEXEC)
			return err != unix.EAGAIN
		})
		if closed != nil {
			return 0, 0, 0, closed
		}
		return n, oobn, flags, err
	}, wire.MaxReport, maxSockets)
	if err != nil {
		return message{err: err}
	}
	r, err := wire.DecodeReport(t, body)
	if err == nil && t != wire.TypeNetwork && len(fds) > maxRights {
		err = wire.ErrMalformed
	}
	if err != nil {
		closeAll(fds)
		return message{err: err}
	}
	return message{report: r, fds: fds}
}

// discard ends the reading of what nobody takes any more, and keeps no descriptor
// that an init which was taken over has sent behind its last word.
func discard(events <-chan message) {
	if events == nil {
		return
	}
	for m := range events {
		closeAll(m.fds)
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// sendFiles passes descriptors to init, in order.
func sendFiles(control *os.File, files []*os.File) error {
	conn, err := control.SyscallConn()
	if err != nil {
		return err
	}
	for len(files) > 0 {
		n := min(len(files), wire.MaxFiles)
		fds := make([]int, n)
		for i := range fds {
			fds[i] = int(files[i].Fd())
		}
		var err error
		closed := conn.Write(func(fd uintptr) bool {
			err = unix.Sendmsg(int(fd), wire.Frame(wire.TypeFiles, nil), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
			return err != unix.EAGAIN
		})
		if closed != nil {
			return closed
		}
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
// larger than the socket's buffer goes on in the background. An init that is
// gone is no error: listen says so, and what its last words were.
func send(control *os.File, frame []byte) error {
	n, err := unix.SendmsgN(int(control.Fd()), frame, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	switch err {
	case nil:
	case unix.EAGAIN:
		n = 0
	case unix.EPIPE, unix.ECONNRESET:
		return nil
	default:
		// Init would wait for it, and the program's time with it.
		return os.NewSyscallError("sendmsg", err)
	}
	rest := frame[n:]
	if len(rest) == 0 {
		return nil
	}
	conn, err := control.SyscallConn()
	if err != nil {
		return err
	}
	// Write keeps the number from being another descriptor's when the run ends
	// meanwhile: the plan must not go to somebody else's init.
	go conn.Write(func(fd uintptr) bool {
		for len(rest) > 0 {
			n, err := unix.SendmsgN(int(fd), rest, nil, nil, unix.MSG_NOSIGNAL)
			if err != nil && err != unix.EINTR {
				return err != unix.EAGAIN
			}
			rest = rest[max(n, 0):]
		}
		return true
	})
	return nil
}
