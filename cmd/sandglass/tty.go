package main

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// usual is the size of a terminal inside where the caller has none.
var usual = sandbox.Window{Rows: 24, Cols: 80}

// tty is the caller's terminal while a program has one inside. With -i it is
// raw: what is typed, Ctrl-C too, is the program's, and the terminal inside
// makes of it what a terminal does.
type tty struct {
	in       int // the terminal that is raw, -1 for none
	was, raw unix.Termios
	guard    *guard
	keys     *keys
	spoken   spoken
	resize   chan sandbox.Window
	signals  chan os.Signal
	mu       sync.Mutex // guards left
	left     bool
}

// enter joins the caller's terminal to the one inside, where -t asks for one.
// Before the run: a job in the background is stopped here, as any that sets its
// terminal is, and not while a program runs.
func enter(p *policy.Parsed) (*tty, error) {
	if !p.Spec.TTY {
		return nil, nil
	}
	t := &tty{in: -1, resize: make(chan sandbox.Window, 1), signals: make(chan os.Signal, 8)}
	if p.Spec.Stdin {
		was, err := unix.IoctlGetTermios(unix.Stdin, unix.TCGETS)
		if err != nil {
			return nil, refusal.Newf("-it: stdin is not a terminal").
				Hint("sandglass run -i -- COMMAND <FILE   # stdin is a pipe inside").
				Hint("sandglass run -t -- COMMAND   # a terminal inside that nobody types into")
		}
		t.in, t.was, t.raw = unix.Stdin, *was, rawMode(*was)
		if t.keys, err = newKeys(); err == nil {
			t.guard, err = watchOver(t.was, t.raw)
		}
		if err != nil {
			return nil, refusal.Newf("-it: starting the process that resets the terminal: %v", err)
		}
		signal.Notify(t.signals, syscall.SIGCONT)
		set(t.in, &t.raw)
	}
	signal.Notify(t.signals, syscall.SIGWINCH)
	return t, nil
}

// join gives the terminal inside the caller's size, and later ones, and what is
// typed.
func (t *tty) join(spec *sandbox.Spec) {
	if t == nil {
		return
	}
	spec.Window, spec.Resize = size(), t.resize
	if t.in >= 0 {
		spec.Stdin = t.keys
		go t.follow()
		if spec.Stdout == io.Writer(os.Stdout) && same(t.in, unix.Stdout) {
			spec.Stdout = t
		}
	}
	go t.listen()
}

// rawMode is what cfmakeraw(3) makes of a terminal's settings.
func rawMode(t unix.Termios) unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return t
}

// size is the caller's, of the first stream that is a terminal.
func size() sandbox.Window {
	for _, fd := range []int{unix.Stdout, unix.Stdin, unix.Stderr} {
		if w, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil && w.Row > 0 && w.Col > 0 {
			return sandbox.Window{Rows: w.Row, Cols: w.Col}
		}
	}
	return usual
}

// listen follows the size. Whoever stopped this process may have set the
// terminal meanwhile, as shells do: when it is continued, it is raw again.
func (t *tty) listen() {
	for sig := range t.signals {
		t.mu.Lock()
		if t.left {
			t.mu.Unlock()
			return
		}
		switch sig {
		case syscall.SIGCONT:
			if foreground(t.in) {
				set(t.in, &t.raw)
			} else {
				go t.turn()
			}
			fallthrough
		case syscall.SIGWINCH:
			select { // only the last one counts
			case <-t.resize:
			default:
			}
			t.resize <- size()
		}
		t.mu.Unlock()
	}
}

// leave gives the terminal back as it was. It may be called twice, and on nil.
func (t *tty) leave() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	signal.Stop(t.signals)
	close(t.signals)
	if t.in >= 0 {
		t.reset()
		t.guard.dismiss()
	}
}

// reset gives the settings back, unless the terminal is another job's by now.
// What was typed for the program, and what the terminal answered to escape
// sequences of its, must not be read by the caller's shell as a command line.
func (t *tty) reset() {
	if foreground(t.in) {
		t.hush()
		t.keys.stop.Close()
		unix.IoctlSetInt(t.in, unix.TCFLSH, unix.TCIFLUSH)
		set(t.in, &t.was)
	}
}

// foreground is whether the terminal is this job's, or of another session, which
// knows no jobs of ours.
func foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

func set(fd int, t *unix.Termios) {
	for unix.IoctlSetTermios(fd, unix.TCSETS, t) == unix.EINTR {
	}
}
