package store

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Stopper ends the one import of this process from another goroutine, at whatever
// step it is. The zero value is ready.
type Stopper struct {
	mu   sync.Mutex // held while a step must be whole: the work appears, the image does
	work *Work
	done bool // the image has its place and its name
}

// Stop takes the work away, and says so; false is for an image that is there already,
// with which the import goes on to its end. After true the import never ends: it
// waits for what is held here, so that it cannot tell of files that went away below
// it. The process has to.
func (s *Stopper) Stop() bool {
	s.mu.Lock()
	if s.done {
		s.mu.Unlock()
		return false
	}
	if s.work != nil {
		s.work.vanish()
	}
	return true
}

// vanish removes the work's directory, though somebody may still put files in it. In
// a directory that is removed nothing can be made, so there is an end.
func (w *Work) vanish() {
	for range maxTries {
		if removeAll(w.temp, w.name) != unix.ENOTEMPTY {
			return // what cannot be removed the next import tries
		}
	}
}

const maxTries = 10000
