package main

import (
	"errors"
	"os"
	"syscall"
)

// hostDone is closed once nobody holds a lock on the file with this host's results:
// whoever runs the host's tests beside the machines holds it until their end.
func hostDone(path string) (<-chan struct{}, error) {
	done := make(chan struct{})
	if path == "" {
		close(done)
		return done, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(done)
		defer f.Close()
		for errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH), syscall.EINTR) {
		}
	}()
	return done, nil
}

// slots are as many as there are CPUs, for each machine emulates its two on one.
// Half of them are the host's own tests' until those are done.
func slots(cpus int, host <-chan struct{}) chan struct{} {
	free := make(chan struct{}, cpus)
	for range cpus / 2 {
		free <- struct{}{}
	}
	go func() {
		<-host
		for range cpus / 2 {
			<-free
		}
	}()
	return free
}
