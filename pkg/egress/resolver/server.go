// Package resolver is the name server inside a run with a list of hosts. It
// answers a listed name that exists on the host with an address inside, and
// nothing else: what is not listed never leaves, so that a query carries nothing
// out, and no answer carries an address in.
package resolver

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/lookup"
	"sandglass/pkg/egress/names"
)

// Log takes what was refused. The name comes from inside and may be any bytes.
type Log interface {
	Refused(host string, port uint16, reason string)
}

// Server is ready when its exported fields are set. It serves any number of
// sockets at once.
type Server struct {
	List   *hosts.List
	Table  *names.Table
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error) // a lookup.Cache's
	V6     bool                                                         // IPv6 is there inside
	Log    Log

	budget  budget
	pace    pace
	streams slots
}

// patience is how long a program waits for the host's resolver.
const patience = lookup.Patience

// answer is what goes back, beside the question.
type answer struct {
	code dnsmessage.RCode
	addr netip.Addr // of A and AAAA
	ptr  string     // of PTR
}

// start deals with a message. What it can say without the host is reply; a query
// that is not nil has to be finished. Both are nil where silence is the answer.
func (s *Server) start(msg []byte) (reply []byte, q *query) {
	q, code := read(msg)
	switch {
	case q == nil:
		return nil, nil
	case code != dnsmessage.RCodeSuccess:
		return q.reply(answer{code: code}), nil
	}
	a, ask := s.decide(q)
	if ask {
		return nil, q
	}
	return q.reply(a), nil
}

// decide is all that the list and the table know. With ask, only the host knows
// whether the name exists.
func (s *Server) decide(q *query) (a answer, ask bool) {
	asked := q.question.Name.String()
	if q.question.Type == dnsmessage.TypePTR {
		if addr, ok := reversed(asked); ok {
			name, found := s.Table.Name(addr)
			if !found {
				return answer{code: dnsmessage.RCodeNameError}, false
			}
			return answer{ptr: name}, false
		}
	}
	name, ok := hosts.Canonical(asked)
	if !ok || !s.List.AllowsAnyPort(name) {
		if asked != "." {
			asked = strings.TrimSuffix(asked, ".")
		}
		s.Log.Refused(asked, 0, "not in the list")
		return answer{code: dnsmessage.RCodeNameError}, false
	}
	q.name = name
	switch {
	case q.question.Type == dnsmessage.TypeA:
	case q.question.Type == dnsmessage.TypeAAAA && s.V6:
	default:
		// Nothing of the other types, at once. HTTPS records above all: they would
		// name other ports, other hosts and keys for a hidden server name.
		return answer{}, false
	}
	if suffix, below := s.List.Below(name); below {
		if why := s.budget.spend(suffix, name); why != "" {
			s.Log.Refused(name, 0, why)
			return answer{code: dnsmessage.RCodeRefused}, false
		}
	}
	return answer{}, true
}

// finish asks the host. Which addresses the name has there is nothing to the
// program: it gets the name's own.
func (s *Server) finish(ctx context.Context, q *query) []byte {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addrs, err := s.Lookup(ctx, q.name)
	switch {
	case errors.Is(err, lookup.ErrNoName), err == nil && len(addrs) == 0:
		return q.reply(answer{code: dnsmessage.RCodeNameError})
	case errors.Is(err, lookup.ErrSpent):
		s.Log.Refused(q.name, 0, err.Error())
		return q.busy()
	case err != nil:
		return q.busy()
	}
	v4, v6, ok := s.Table.For(q.name)
	if !ok {
		s.Log.Refused(q.name, 0, "too many names")
		return q.reply(answer{code: dnsmessage.RCodeRefused})
	}
	if q.question.Type == dnsmessage.TypeAAAA {
		return q.reply(answer{addr: v6})
	}
	return q.reply(answer{addr: v4})
}

// busy tells the program to ask again later.
func (q *query) busy() []byte { return q.reply(answer{code: dnsmessage.RCodeServerFailure}) }

// pause is what a flood of queries waits, of which each costs the host's CPU
// that no limit of the sandbox counts.
func (s *Server) pause(ctx context.Context) {
	d := s.pace.delay(time.Now())
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
