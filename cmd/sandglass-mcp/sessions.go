package main

import (
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions are what is known of the protocol's sessions by HTTP, beside what the SDK
// keeps. When there are as many as there may be, a new one takes the place of another
// that nobody is waiting in: whose client has gone is not told otherwise, and who
// opens many keeps others out for no longer than a request takes. Its client is
// answered 404 then, and begins anew, as the protocol has it.
type sessions struct {
	mu   sync.Mutex
	last uint64
	of   map[string]*use
}

// use is what a client made of its session.
type use struct {
	requests, live int
	last           uint64 // the greater the later
}

const sessionHeader = "Mcp-Session-Id"

// enter notes a request of a session until leave is called.
func (s *sessions) enter(r *http.Request, server *mcp.Server) (leave func()) {
	id := r.Header.Get(sessionHeader)
	if id == "" || r.Method == http.MethodGet || !exists(server, id) { // no id of the client's own choice is kept
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]*use{}
	}
	u := s.of[id]
	if u == nil {
		u = &use{}
		s.of[id] = u
	}
	u.requests++
	u.live++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last++
		u.live--
		u.last = s.last
	}
}

func exists(server *mcp.Server, id string) bool {
	for one := range server.Sessions() {
		if one.ID() == id {
			return true
		}
	}
	return false
}

// room makes room for one more, and says whether there is any.
func (s *sessions) room(server *mcp.Server) bool {
	all := map[string]*mcp.ServerSession{}
	var order []string // the oldest first
	for one := range server.Sessions() {
		all[one.ID()], order = one, append(order, one.ID())
	}
	s.mu.Lock()
	for id := range s.of {
		if all[id] == nil {
			delete(s.of, id)
		}
	}
	out := s.idlest(order)
	s.mu.Unlock()
	if len(order) < maxSessions {
		return true
	}
	if out == "" {
		return false
	}
	all[out].Close()
	return true
}

// idlest is whose place another takes: one that made nothing of its session, or else
// has used it last before all others. The lock is held.
func (s *sessions) idlest(order []string) (out string) {
	const greetings = 1 // notifications/initialized
	var least *use
	for _, id := range order {
		u := s.of[id]
		if u == nil {
			u = &use{}
		}
		made := u.requests > greetings
		switch {
		case u.live > 0:
		case least == nil, least.requests > greetings && !made, least.requests > greetings == made && u.last < least.last:
			out, least = id, u
		}
	}
	return out
}
