package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// cleanTime is how long more signals are ignored after the first, and how long
// the end may take after the second.
const cleanTime = 2 * time.Second

// signals is what the caller's signals have asked for so far.
type signals struct {
	ctx    context.Context // ends with the first
	second chan struct{}   // closed with the next one that comes after cleanTime
	got    atomic.Int32    // number of the first, 0 for none
	ch     chan os.Signal
	cancel context.CancelFunc
	last   func() // before an end with nothing cleaned up, nil for nothing
	once   sync.Once
}

// stop is for the end of a command. The signals stay caught, and do nothing any
// more: for each that is given back Go's runtime wakes a thread and waits for it,
// which took longer than the process's end.
func (s *signals) stop() { s.cancel() }

// untilSignal catches SIGINT, SIGTERM, SIGHUP and SIGQUIT: each would end
// sandglass before it has cleaned up and said what became of the run. It ignores
// those that would stop it.
func untilSignal(last func()) *signals {
	s := newSignals(last)
	s.catch()
	return s
}

// newSignals is untilSignal for who calls catch when there is something to clean up.
func newSignals(last func()) *signals {
	s := &signals{last: last, second: make(chan struct{}), ch: make(chan os.Signal, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	// A reader that went away (sandglass run … | head) must not kill sandglass
	// before it has cleaned up: the write fails instead, and the program meets
	// the SIGPIPE.
	signal.Ignore(syscall.SIGPIPE)
	// A terminal's Ctrl-Z, and its refusal of reads and writes in the background,
	// would stop the clocks and the watchdog, and the program would run on.
	// Ignored and not caught: a read would try again for ever, so it is EIO. Init
	// gives itself and the program the default (see launch's initCalls).
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	return s
}

// catch begins to catch. For each signal Go's runtime wakes a thread and waits for
// it, which together takes as long as the planning of a small run.
func (s *signals) catch() {
	s.once.Do(func() {
		for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			// nohup(1) has SIGHUP ignored, and a shell without job control the SIGINT of
			// what it starts in the background: a Notify would undo that.
			if !signal.Ignored(sig) {
				signal.Notify(s.ch, sig)
			}
		}
		go s.listen()
	})
}

func (s *signals) listen() {
	sig := <-s.ch
	s.got.Store(int32(sig.(syscall.Signal)))
	s.cancel()
	// timeout(1) sends its signal twice, to its child and to the group: a second
	// one must not keep us from cleaning up.
	for deadline := time.After(cleanTime); ; {
		select {
		case <-s.ch:
			continue
		case <-deadline:
		}
		break
	}
	sig = <-s.ch
	close(s.second)
	// A reader of the output that does not read holds us up: then the end is an
	// end with nothing cleaned up but what the kernel does, and the next run.
	time.AfterFunc(cleanTime, func() {
		if s.last != nil {
			s.last()
		}
		os.Exit(128 + int(sig.(syscall.Signal)))
	})
}
