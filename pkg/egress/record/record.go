// Package record is the bounded log of what a run did over the network: the
// supervisor's memory and the result must not grow with what a program tries.
package record

import (
	"math"
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
	rule  string
	result.Connection
}

type key struct {
	host, reason string
	port         uint16
}

// Connection adds one that is over, which a rule of the list has allowed. Its
// bytes count when there is no room for it.
func (l *Log) Connection(begun time.Time, rule string, c result.Connection) {
	c.Host, c.Address, c.Error = bounded(c.Host, maxHost), bounded(c.Address, maxHost), bounded(c.Error, maxText)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net.BytesUp += c.BytesUp
	l.net.BytesDown += c.BytesDown
	l.conns = append(l.conns, connection{begun, rule, c})
	if len(l.conns) <= MaxConnections {
		return
	}
	i := leaving(len(l.conns), func(i int) (string, int64) {
		return l.conns[i].rule, l.conns[i].BytesUp + l.conns[i].BytesDown
	})
	l.conns = slices.Delete(l.conns, i, i+1)
	l.net.MoreConnections++
}

// leaving is the entry that a list which is too long loses: of the group that has
// most of them the one that weighs least, the last of those. A program that fills
// the list with what is harmless hides neither the first connection by another
// rule nor one with many bytes.
func leaving(n int, entry func(int) (group string, weight int64)) int {
	size, most := map[string]int{}, 0
	for i := range n {
		group, _ := entry(i)
		size[group]++
		most = max(most, size[group])
	}
	at, least := 0, int64(math.MaxInt64)
	for i := range n {
		if group, weight := entry(i); size[group] == most && weight <= least {
			at, least = i, weight
		}
	}
	return at
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
	if l.refused == nil {
		l.refused = map[key]int{}
	}
	l.refused[k] = len(l.net.Refused)
	l.net.Refused = append(l.net.Refused, result.RefusedHost{Host: k.host, Port: port, Reason: k.reason, Count: 1})
	if len(l.net.Refused) > MaxRefused {
		l.forget(leaving(len(l.net.Refused), func(i int) (string, int64) { return l.net.Refused[i].Reason, l.net.Refused[i].Count }))
	}
}

// forget takes the i-th refused host out of the list.
func (l *Log) forget(i int) {
	l.net.MoreRefused += l.net.Refused[i].Count
	l.net.Refused = slices.Delete(l.net.Refused, i, i+1)
	for k, at := range l.refused {
		switch {
		case at == i:
			delete(l.refused, k)
		case at > i:
			l.refused[k]--
		}
	}
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
