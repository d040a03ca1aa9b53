package relay

import (
	"maps"
	"sync"
	"time"
)

// silenceTime is how long a failure stands for the name's other address, and
// what a failure must have taken to be worth it.
const silenceTime = time.Second

// silence remembers names whose host has not answered. A name has two addresses
// inside, and behind each of them is all of the host: a program that tries one
// after the other would wait twice for the same silence. Who tries the same
// address again asks the host again.
type silence struct {
	mu    sync.Mutex
	known map[destination]failure
}

type destination struct {
	name string
	port uint16
}

type failure struct {
	v4  bool // the program's address
	at  time.Time
	err error
}

// heard is the error that a connection would meet by the other address of its
// name, nil: it has to be found out.
func (s *silence) heard(d destination, v4 bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.known[d]
	if !ok || f.v4 == v4 || time.Since(f.at) >= silenceTime {
		return nil
	}
	return f.err
}

// add remembers what took as long as from begun until now.
func (s *silence) add(d destination, v4 bool, begun time.Time, err error) {
	now := time.Now()
	if now.Sub(begun) < silenceTime {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[destination]failure{}
	}
	maps.DeleteFunc(s.known, func(_ destination, f failure) bool { return now.Sub(f.at) >= silenceTime })
	s.known[d] = failure{v4, now, err}
}
