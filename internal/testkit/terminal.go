package testkit

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// PTY is a pseudo-terminal: what is written to slave can be read from master,
// until the last descriptor of slave is closed.
func PTY(t testing.TB) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		Skip(t, "/dev/ptmx", err.Error())
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// Terminal plays the person in front of a terminal: types, reads, and looks at
// what became of its settings.
type Terminal struct {
	t      testing.TB
	master *os.File
	Slave  *os.File
	shown  *lines
	read   int // of what was shown
	marks  int // see Shown
}

// NewTerminal has 33 rows and 101 columns, and is closed when the test ends.
func NewTerminal(t testing.TB) *Terminal {
	t.Helper()
	x := &Terminal{t: t, shown: newLines()}
	x.master, x.Slave = PTY(t)
	x.Resize(33, 101)
	done := make(chan struct{})
	go func() {
		io.Copy(x.shown, x.master)
		close(done)
	}()
	t.Cleanup(func() {
		x.Slave.Close()
		<-done // everybody else who had it open is gone
		x.master.Close()
	})
	return x
}

// Start starts sandglass in a session of its own, whose terminal this is.
func (x *Terminal) Start(o Opts, args ...string) *Process {
	x.t.Helper()
	setup := o.Setup
	o.Setup = func(cmd *exec.Cmd) {
		x.Lead(cmd)
		if setup != nil {
			setup(cmd)
		}
	}
	return Start(x.t, o, args...)
}

// Lead makes cmd the leader of a session with this terminal.
func (x *Terminal) Lead(cmd *exec.Cmd) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Slave, x.Slave, x.Slave
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
}

// Type types.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatalf("typing %q: %v", text, err)
	}
}

// Paste types more than the terminal may take at once, in the background. What
// is left at the end of the test is dropped.
func (x *Terminal) Paste(text string) { go x.master.WriteString(text) }

// Expect waits until text is shown, after what was read before, and returns all
// that was shown until then.
func (x *Terminal) Expect(text string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		x.shown.mu.Lock()
		more := x.shown.more
		x.shown.mu.Unlock()
		rest := x.shown.String()[x.read:]
		if i := strings.Index(rest, text); i >= 0 {
			x.read += i + len(text)
			return rest[:i+len(text)]
		}
		select {
		case <-more:
		case <-ctx.Done():
			x.t.Fatalf("%q was not shown within %v; after what was read before: %q", text, patience, rest)
		}
	}
}

// Shown is all that was shown by now: a mark that is written behind it has come.
func (x *Terminal) Shown() string {
	x.t.Helper()
	const mark = "\x1d"
	if _, err := x.Slave.WriteString(mark); err != nil {
		x.t.Fatal(err)
	}
	x.marks++
	Eventually(x.t, "a mark on the terminal", func() bool { return strings.Count(x.shown.String(), mark) == x.marks })
	return strings.ReplaceAll(x.shown.String(), mark, "")
}

// Resize sets the size, as a window manager does.
func (x *Terminal) Resize(rows, cols uint16) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		x.t.Fatal(err)
	}
}

// Settings are the terminal's, as stty(1) tells them.
func (x *Terminal) Settings() unix.Termios {
	x.t.Helper()
	s, err := unix.IoctlGetTermios(int(x.Slave.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return *s
}

// Raw says that nothing that is typed is echoed or taken for a signal.
func (x *Terminal) Raw() bool {
	x.t.Helper()
	s := x.Settings()
	return s.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == 0 && s.Oflag&unix.OPOST == 0
}
