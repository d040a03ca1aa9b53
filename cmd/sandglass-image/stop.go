package main

import (
	"os"
	"os/signal"
	"syscall"

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

// signals are those that end a command, as they come.
func signals() <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
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
