package launch

import (
	"errors"
	"io"
	"os"
	"time"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Window is the size of a terminal in characters.
type Window struct{ Rows, Cols uint16 }

var errNoTerminal = errors.New("what init sent is not a terminal of the sandbox's own")

// pump starts to pass the streams on. A terminal's only one starts when init
// has sent it.
func (s *session) pump(streams []*os.File) {
	b := s.box
	if b.Terminal {
		s.out, s.err = noStream(), noStream()
		return
	}
	s.out = startPump(streams[0], b.Stdout, b.OutputLimit, s.overflow)
	s.err = startPump(streams[1], b.Stderr, b.OutputLimit, s.overflow)
}

// noStream is the pump of a stream that there is not.
func noStream() *pump {
	p := newPump(nil, nil, 0, nil)
	close(p.done)
	return p
}

// attach takes the master of the program's terminal. Its bytes pass in both
// directions as they are, in goroutines: a program that reads nothing, and a
// caller that does not, hold up no clock.
func (s *session) attach(fds []int) error {
	b := s.box
	if !b.Terminal || s.tty != nil || !s.started.IsZero() || len(fds) != 1 {
		return wire.ErrMalformed
	}
	if err := ownMaster(fds[0]); err != nil {
		return err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return err
	}
	s.tty = os.NewFile(uintptr(fds[0]), "terminal")
	s.out = newPump(s.tty, b.Stdout, b.OutputLimit, s.overflow)
	s.out.tty = true
	go s.out.run()
	if b.Stdin != nil {
		go feedTerminal(s.tty, b.Stdin)
	}
	s.resize(b.Window, true)
	return nil
}

// ownMaster says that a descriptor is a pseudo-terminal's master, and none of
// the host's: what the program writes, and its size, would be set there.
func ownMaster(fd int) error {
	var fs unix.Statfs_t
	var st, host unix.Stat_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.DEVPTS_SUPER_MAGIC || unix.Fstat(fd, &st) != nil {
		return errNoTerminal
	}
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
		return errNoTerminal
	}
	if unix.Stat("/dev/pts", &host) == nil && host.Dev == st.Dev {
		return errNoTerminal
	}
	return nil
}

// resize sets the terminal's size, and the kernel tells the program (SIGWINCH).
// One that comes before the terminal is set when that comes.
func (s *session) resize(w Window, ok bool) {
	if !ok {
		s.box.Resize = nil // else its end would be met again and again
		return
	}
	s.box.Window = w
	if s.tty == nil {
		return
	}
	// Not Fd, which would make the description block.
	if raw, err := s.tty.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
		})
	}
}

// feedTerminal types the caller's stdin. At its end it types the terminal's
// character for that, as a person would: a terminal has no other end of file
// that leaves it open for output.
func feedTerminal(tty *os.File, from io.Reader) {
	last := byte('\n')
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, werr := tty.Write(buf[:n]); werr != nil {
				return
			}
			last = buf[n-1]
		}
		if err == io.EOF {
			tty.Write(endOfFile(tty, last))
		}
		if err != nil {
			return
		}
	}
}

// endOfFile is twice the character after part of a line: the first one only
// hands that part over.
func endOfFile(tty *os.File, last byte) []byte {
	eof := byte(4)
	if raw, err := tty.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			if t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
				eof = t.Cc[unix.VEOF]
			}
		})
	}
	if last == '\n' {
		return []byte{eof}
	}
	return []byte{eof, eof}
}

// dropTime is the pause between two reads of what is dropped.
const dropTime = time.Millisecond

// slowly drops what a terminal brings, as much of it as the terminal holds at a
// time. It cannot be dropped without copying, and a flood of single lines would
// have a whole CPU here and in the kernel's own threads, which no limit counts.
func (p *pump) slowly(buf []byte) func() (int64, error) {
	return func() (int64, error) {
		time.Sleep(dropTime)
		n, err := p.from.Read(buf)
		return int64(n), err
	}
}
