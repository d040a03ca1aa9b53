// Package record is the bounded log of what a run did over the network: the
// supervisor's memory and the result must not grow with what a program tries.
package record

import (
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
)

// Bounds. A name has 253 bytes at most; what is longer comes from a program that
// wants it to be long.
const (
	MaxConnections = 256
	MaxRefused     = 256
	maxHost        = 256
	maxText        = 512
)

// Log collects. Its zero value is ready, and every method may be called from
// several goroutines.
type Log struct {
	mu      sync.Mutex
	net     result.Network
	conns   []connection
	refused map[key]int // index in net.Refused
}

type connection struct {
	begun time.Time
	result.Connection
}

type key struct {
	host, reason string
	port         uint16
}

// Connection adds one that is over. Its bytes count when there is no room for it.
func (l *Log) Connection(begun time.Time, c result.Connection) {
	c.Host, c.Address, c.Error = bounded(c.Host, maxHost), bounded(c.Address, maxHost), bounded(c.Error, maxText)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net.BytesUp += c.BytesUp
	l.net.BytesDown += c.BytesDown
	if len(l.conns) >= MaxConnections {
		l.net.MoreConnections++
		return
	}
	l.conns = append(l.conns, connection{begun, c})
}

// Refused counts a host that the list does not have, by name or address, with
// the port where one was tried.
func (l *Log) Refused(host string, port uint16, reason string) {
	k := key{bounded(host, maxHost), bounded(reason, maxText), port}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.refused[k]; ok {
		l.net.Refused[i].Count++
		return
	}
	if len(l.net.Refused) >= MaxRefused {
		l.net.MoreRefused++
		return
	}
	if l.refused == nil {
		l.refused = map[key]int{}
	}
	l.refused[k] = len(l.net.Refused)
	l.net.Refused = append(l.net.Refused, result.RefusedHost{Host: k.host, Port: port, Reason: k.reason, Count: 1})
}

// Network is what was collected so far, a copy, with the connections in the order
// in which they began. Its lists are never nil: they are [] in the result.
func (l *Log) Network() *result.Network {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.net
	slices.SortStableFunc(l.conns, func(a, b connection) int { return a.begun.Compare(b.begun) })
	n.Connections = []result.Connection{}
	for _, c := range l.conns {
		n.Connections = append(n.Connections, c.Connection)
	}
	n.Refused = append([]result.RefusedHost{}, n.Refused...)
	return &n
}

// bounded cuts before it makes s printable, and again after: an escape is longer
// than what it stands for.
func bounded(s string, most int) string {
	cut := false
	if len(s) > most {
		s, cut = s[:most], true
	}
	s = refusal.Line(s)
	for len(s) > most {
		_, size := utf8.DecodeLastRuneInString(s)
		s, cut = s[:len(s)-size], true
	}
	if cut {
		s += "…"
	}
	return s
}
