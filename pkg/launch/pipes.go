package launch

import (
	"errors"
	"io"
	"os"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// pipes makes the program's three streams and returns our ends of two, none
// where init makes a terminal.
func (s *session) pipes() (ours []*os.File, err error) {
	b := s.box
	if b.Terminal {
		b.Config.Terminal, b.Config.Rows, b.Config.Cols = true, b.Window.Rows, b.Window.Cols
		b.Config.Stdin, b.Config.Stdout, b.Config.Stderr = wire.NoFD, wire.NoFD, wire.NoFD
		return nil, nil
	}
	for i, num := range [...]*int32{&b.Config.Stdin, &b.Config.Stdout, &b.Config.Stderr} {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			closePipes(ours)
			return nil, err
		}
		if i > 0 {
			*num = b.AddFD(p[1], "pipe")
			ours = append(ours, pollable(p[0], "pipe"))
		} else {
			*num = b.AddFD(p[0], "pipe")
			s.stdin = pollable(p[1], "pipe")
		}
		if err := b.Identity.open(p[0]); err != nil {
			closePipes(ours)
			return nil, errors.Join(lacksCap(err, "CHOWN", "to give the sandbox its pipes"), err)
		}
	}
	return ours, nil
}

// stream begins to pass the streams on: bytes of the caller's go in, and what
// the program writes comes out. Until then a pipe holds it.
func (s *session) stream() {
	if s.stdin != nil && s.box.Stdin != nil {
		go feed(s.stdin, s.box.Stdin)
	} else if s.stdin != nil {
		s.stdin.Close()
	}
	s.stdin = nil
	s.pump(s.streams)
	s.streams = nil
}

// unused closes the streams that nothing was passed on of.
func (s *session) unused() {
	if s.out != nil {
		return
	}
	if s.stdin != nil {
		s.stdin.Close()
	}
	closePipes(s.streams)
	s.out, s.err = noStream(), noStream()
}

// open lets the program open a pipe anew as /dev/stdout: it is its maker's, with
// mode 0600. One cannot be given away by an ordinary user, but it has no name
// except in /proc, below processes that only its two ends may look into.
func (id *Identity) open(pipe int) error {
	switch {
	case id.helped():
		return unix.Fchmod(pipe, 0o666)
	case id.Mapped:
		return unix.Fchown(pipe, id.HostUID, id.HostGID)
	}
	return nil
}

func closePipes(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// feed copies the caller's stdin into the program's pipe. It ends when either
// side does; a caller that never sends anything keeps only this goroutine.
func feed(to *os.File, from io.Reader) {
	io.Copy(to, from)
	to.Close()
}
