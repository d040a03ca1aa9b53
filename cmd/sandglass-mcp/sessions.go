package main

import (
	"context"
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
	mu     sync.Mutex
	last   uint64
	of     map[string]*use
	begins map[string]string // requests that have room for a new one, and its id once it is known
}

// use is what a client made of its session.
type use struct {
	requests, live int
	last           uint64 // the greater the later
	out            bool   // it gives way: no request enters any more
}

const sessionHeader = "Mcp-Session-Id"

// enter notes a request of a session until leave is called, or one that may begin
// another. It is false for a session that gives way: a call would be cut off.
func (s *sessions) enter(r *http.Request, server *mcp.Server) (leave func(), there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return func() { s.begun(r) }, true
	}
	if r.Method == http.MethodGet || !exists(server, id) { // no id of the client's own choice is kept
		return func() {}, true // the SDK says what is wrong
	}
	u := s.use(id)
	if u.out {
		return nil, false
	}
	u.requests++
	u.live++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last++
		u.live--
		u.last = s.last
	}, true
}

// use is what is known of a session. The lock is held.
func (s *sessions) use(id string) *use {
	if s.of == nil {
		s.of = map[string]*use{}
	}
	if s.of[id] == nil {
		s.of[id] = &use{}
	}
	return s.of[id]
}

// named notes the id of a session that is being begun, before it is initialized.
func (s *sessions) named(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if extra := req.GetExtra(); extra != nil && extra.Header != nil { // by HTTP
			s.name(extra.Header.Get(callHeader), req.GetSession().ID())
		}
		return next(ctx, method, req)
	}
}

func (s *sessions) name(call, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.begins[call]; has {
		s.begins[call] = id
	}
}

// begun is the end of a request that may have begun a session.
func (s *sessions) begun(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.begins, r.Header.Get(callHeader))
}

func exists(server *mcp.Server, id string) bool {
	for one := range server.Sessions() {
		if one.ID() == id {
			return true
		}
	}
	return false
}

// room makes room for the session that a request begins, and says whether there is any.
func (s *sessions) room(r *http.Request, server *mcp.Server) bool {
	out, ok := s.reserve(r, server)
	if out != nil {
		out.Close()
	}
	return ok
}

// reserve keeps room until the request ends, and says who has to go for it: none that
// gives way already, and none that is being begun. Such a one is not initialized, or
// its request is known, whose room counts for it.
func (s *sessions) reserve(r *http.Request, server *mcp.Server) (out *mcp.ServerSession, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := r.Header.Get(callHeader)
	if _, has := s.begins[call]; has {
		return nil, true // the SDK asks twice
	}
	known := map[string]bool{}
	for _, id := range s.begins {
		known[id] = true
	}
	all := map[string]*mcp.ServerSession{}
	var order []string // the oldest first
	for one := range server.Sessions() {
		all[one.ID()] = one
		if u := s.of[one.ID()]; one.InitializeParams() != nil && !known[one.ID()] && (u == nil || !u.out) {
			order = append(order, one.ID())
		}
	}
	for id := range s.of {
		if all[id] == nil {
			delete(s.of, id)
		}
	}
	if len(order)+len(s.begins) >= maxSessions {
		id := s.idlest(order)
		if id == "" {
			return nil, false
		}
		s.use(id).out = true
		out = all[id]
	}
	if s.begins == nil {
		s.begins = map[string]string{}
	}
	s.begins[call] = ""
	return out, true
}

// idlest is whose place another takes: one that made nothing of its session, or else
// has used it last before all others. The lock is held.
func (s *sessions) idlest(order []string) (out string) {
	const greetings = 1 // notifications/initialized
	var least *use
	for _, id := range order {
		u := s.use(id)
		made := u.requests > greetings
		switch {
		case u.live > 0:
		case least == nil, least.requests > greetings && !made, least.requests > greetings == made && u.last < least.last:
			out, least = id, u
		}
	}
	return out
}
