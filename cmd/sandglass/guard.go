package main

import (
	"encoding/binary"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// guardArg0 is argv[0] of the re-executed binary when it is a guard.
const guardArg0 = "sandglass-terminal"

// A guard outlives this process to reset the terminal when it did not come to
// that itself: after SIGKILL, or a panic. It has a session of its own, so that
// what ends a whole job does not end it too.
type guard struct {
	alive *os.File // its other end meets the end of file when this process ends
	proc  *os.Process
}

// settings are what a guard gets told.
type settings struct{ Was, Raw unix.Termios }

func watchOver(was, raw unix.Termios) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// Before anything is changed: a guard that starts late knows it nevertheless.
	if err := binary.Write(w, binary.LittleEndian, settings{was, raw}); err != nil {
		w.Close()
		return nil, err
	}
	proc, err := os.StartProcess("/proc/self/exe", []string{guardArg0}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{os.Stdin, nil, nil, r},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil, err
	}
	return &guard{alive: w, proc: proc}, nil
}

// dismiss ends a guard that has nothing left to do, and waits for that.
func (g *guard) dismiss() {
	g.alive.Write([]byte{1})
	g.alive.Close()
	g.proc.Wait()
}

// guardInit is the guard. It never returns in one.
func guardInit() {
	if len(os.Args) != 1 || os.Args[0] != guardArg0 {
		return
	}
	pipe := os.NewFile(3, "alive")
	var s settings
	if pipe == nil || binary.Read(pipe, binary.LittleEndian, &s) != nil {
		os.Exit(1)
	}
	if _, err := pipe.Read(make([]byte, 1)); err != io.EOF {
		os.Exit(0)
	}
	// A shell that has set its own meanwhile keeps it.
	if now, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil && *now == s.Raw {
		unix.IoctlSetInt(0, unix.TCFLSH, unix.TCIFLUSH)
		set(0, &s.Was)
	}
	os.Exit(0)
}
