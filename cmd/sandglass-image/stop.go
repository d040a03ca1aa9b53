package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/image/child"
	"sandglass/pkg/image/store"
)

// untilSignal has a signal end what is being made: its files first, so that nothing
// is published any more, then the programs that it has started.
func untilSignal(verb string) *store.Stopper {
	work, ch := &store.Stopper{}, signals()
	go func() {
		for got := range ch {
			if !work.Stop() {
				continue // it is there, and only its digest is not told yet
			}
			child.Stop()
			sig := got.(syscall.Signal)
			os.Exit(stopped(verb, sig))
		}
	}()
	return work
}

// together is within what time two signals are one: a terminal that goes away is told
// by the kernel and by the shell.
var together = time.Second

// asked notes the first signal, for who looks at it while he writes to dir. A second one
// does not wait for him: a disk may be in his way that never answers.
func asked(verb, dir string) *atomic.Int32 {
	first, ch := &atomic.Int32{}, signals()
	go func() {
		first.Store(int32((<-ch).(syscall.Signal)))
		since := time.Now()
		for sig := range ch {
			if time.Since(since) < together {
				continue
			}
			os.Stderr.WriteString(refusal.Text("image "+verb+": ended by a second signal: a part of it may be left in "+refusal.Word(dir), []string{"rm -r -- " + refusal.Shell(dir)}))
			os.Exit(128 + int(sig.(syscall.Signal)))
		}
	}()
	return first
}

// signals are those that end a command, as they come.
func signals() <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) { // by nohup(1), say, and a Notify would undo that
			signal.Notify(ch, sig)
		}
	}
	return ch
}

// stopped tells of the end by a signal, and is the exit code of it.
func stopped(verb string, sig syscall.Signal) int {
	os.Stderr.WriteString(refusal.Text("image "+verb+": stopped by "+unix.SignalName(sig)+": nothing is left of it", nil))
	return 128 + int(sig)
}
