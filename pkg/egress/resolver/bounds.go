package resolver

import (
	"sync"
	"sync/atomic"
	"time"
)

// Below a wildcard the program chooses the name, and the host's resolver carries
// it to whoever answers for the suffix: a way out for what the program knows,
// past every check of connections. These bound it for the whole run.
const (
	maxBelow = 100  // different names of each wildcard
	maxData  = 2048 // bytes before the suffixes, of all wildcards together
)

// budget is what has gone out that way. A name that was asked before is free.
type budget struct {
	mu    sync.Mutex
	names map[string]map[string]bool // by suffix
	bytes int
}

// spend says why the name may not be looked up. It counts before the lookup: a
// name that does not exist has gone out as well.
func (b *budget) spend(suffix, name string) (why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.names[suffix]
	data := len(name) - len(suffix) - 1
	switch {
	case seen[name]:
		return ""
	case len(seen) == maxBelow:
		return "too many names below *." + suffix
	case b.bytes+data > maxData:
		return "too many bytes of names below wildcards"
	}
	if seen == nil {
		if b.names == nil {
			b.names = map[string]map[string]bool{}
		}
		seen = map[string]bool{}
		b.names[suffix] = seen
	}
	seen[name] = true
	b.bytes += data
	return ""
}

// A flood of queries is slowed to some 2000 in a second. The windows are short:
// a server that is closed while it pauses ends with the pause.
const (
	window    = 50 * time.Millisecond
	perWindow = 100
)

// pace counts the queries of a window.
type pace struct {
	mu    sync.Mutex
	began time.Time
	count int
}

// delay is how long the next query has to wait.
func (p *pace) delay(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.began) >= window {
		p.began, p.count = now, 0
	}
	if p.count++; p.count <= perWindow {
		return 0
	}
	return p.began.Add(window).Sub(now)
}

// slots counts what goes on at once.
type slots struct{ n atomic.Int32 }

func (s *slots) take(most int32) bool {
	if s.n.Add(1) <= most {
		return true
	}
	s.n.Add(-1)
	return false
}

func (s *slots) give() { s.n.Add(-1) }
