package launch

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// hostTerminal is a pair of the host's own devpts.
func hostTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIP(want /dev/ptmx, have %v)", err)
	}
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(m, true)
	master = os.NewFile(uintptr(m), "master")
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

// What init sends as the terminal is looked at: a pair of the host's, its other
// side, a pipe and a file are none.
func TestTerminalOfTheHostIsRefused(t *testing.T) {
	master, slave := hostTerminal(t)
	r, _ := pipe(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, f := range []*os.File{master, slave, r, null} {
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		s := &session{box: &Box{Terminal: true, Stdout: io.Discard}}
		if err := s.attach([]int{fd}); err != errNoTerminal || s.tty != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
		unix.Close(fd)
	}
}

// A terminal that was not asked for, a second one, one that comes late, and more
// or fewer descriptors than one.
func TestTerminalOutOfTurn(t *testing.T) {
	for name, s := range map[string]*session{
		"not asked for": {box: &Box{}},
		"a second one":  {box: &Box{Terminal: true}, tty: os.Stdin},
		"late":          {box: &Box{Terminal: true}, started: time.Now()},
	} {
		if err := s.attach([]int{0}); err != wire.ErrMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, fds := range [][]int{nil, {0, 1}} {
		s := &session{box: &Box{Terminal: true}}
		if err := s.attach(fds); err != wire.ErrMalformed {
			t.Errorf("%v: %v", fds, err)
		}
	}
}

// At the end of stdin the terminal's own character for it is typed, twice after
// part of a line; after any other error nothing is.
func TestFeedTerminal(t *testing.T) {
	for _, c := range []struct {
		from io.Reader
		want string
	}{
		{strings.NewReader(""), "\x1a"},
		{strings.NewReader("ab\n"), "ab\n\x1a"},
		{strings.NewReader("ab\ncd"), "ab\ncd\x1a\x1a"},
		{io.MultiReader(strings.NewReader("ab"), lost{}), "ab"},
	} {
		master, slave := hostTerminal(t)
		s, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		s.Lflag, s.Iflag = 0, 0
		s.Cc[unix.VEOF] = 0x1a // that of somebody else's habits
		if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, s); err != nil {
			t.Fatal(err)
		}
		feedTerminal(master, c.from)
		got := make([]byte, len(c.want))
		if _, err := io.ReadFull(slave, got); err != nil || string(got) != c.want {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
		if n, err := unix.IoctlGetInt(int(slave.Fd()), unix.TIOCINQ); err != nil || n != 0 {
			t.Errorf("%q: %d bytes more, %v", c.want, n, err)
		}
	}
}

type lost struct{}

func (lost) Read([]byte) (int, error) { return 0, unix.EIO }

// The end of a terminal is EIO, and no loss; with a pipe it is one.
func TestPumpTerminal(t *testing.T) {
	master, slave := hostTerminal(t)
	slave.WriteString("a\n")
	slave.Close()
	var got bytes.Buffer
	p := newPump(master, &got, 100, func() {})
	p.tty = true
	p.run()
	if p.err != nil || got.String() != "a\r\n" {
		t.Errorf("%v, %q", p.err, got.String())
	}
	master, slave = hostTerminal(t)
	slave.Close()
	p = newPump(master, &got, 100, func() {})
	if p.run(); p.err == nil {
		t.Error("EIO of anything else is no loss")
	}
}
