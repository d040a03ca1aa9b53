package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asks is a request of a session, or one that begins another.
func (g *guard) asks(t *testing.T, id string) *http.Request {
	t.Helper()
	r := httptest.NewRequest("POST", endpoint, nil)
	if id != "" {
		r.Header.Set(sessionHeader, id)
	}
	t.Cleanup(g.tools.calls.enter(r))
	return r
}

// begins has a session begun, and something done when it is initialized and not yet answered.
func (g *guard) begins(t *testing.T, meanwhile func(id string)) {
	t.Helper()
	g.tools.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			meanwhile(req.GetSession().ID())
			return res, err
		}
	})
	r := httptest.NewRequest("POST", endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	g.pass(timely{w}, r)
	if id := w.Header().Get(sessionHeader); w.Code != http.StatusOK || id == "" {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// sessionsOf is a server with as many idle sessions as asked for.
func sessionsOf(t *testing.T, n int) *guard {
	t.Helper()
	g := &guard{o: &options{}, tools: &tools{server: mcp.NewServer(&mcp.Implementation{Name: "x"}, nil)}}
	g.tools.server.AddReceivingMiddleware(g.tools.sessions.named)
	g.next = g.tools.streamable()
	for i := range n {
		s, err := g.tools.server.Connect(t.Context(), &mcp.StreamableServerTransport{SessionID: strconv.Itoa(i)},
			&mcp.ServerSessionOptions{State: &mcp.ServerSessionState{InitializeParams: &mcp.InitializeParams{}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
	}
	return g
}

// TestSessionsBegunAtOnce: each has room of its own before the protocol lists it, however
// often it is asked for, until its request ends.
func TestSessionsBegunAtOnce(t *testing.T) {
	g := sessionsOf(t, 0)
	s := &g.tools.sessions
	var last func()
	for range maxSessions {
		r := g.asks(t, "")
		last, _ = s.enter(r, g.tools.server)
		for range 2 {
			if !s.room(r, g.tools.server) {
				t.Fatal("no room")
			}
		}
	}
	r := g.asks(t, "")
	if s.room(r, g.tools.server) {
		t.Error("room for one more than there may be")
	}
	if last(); !s.room(r, g.tools.server) {
		t.Error("no room where one has ended")
	}
}

// TestSessionBegunIsCountedOnce: neither does it give way while its request goes on, nor
// does another one for it.
func TestSessionBegunIsCountedOnce(t *testing.T) {
	g := sessionsOf(t, maxSessions-2)
	g.begins(t, func(id string) {
		if out, ok := g.tools.sessions.reserve(g.asks(t, ""), g.tools.server); out != nil || !ok {
			t.Errorf("%v, %v, and there is room", out, ok)
		}
		for i := range maxSessions - 2 {
			if out, ok := g.tools.sessions.reserve(g.asks(t, ""), g.tools.server); !ok || out == nil || out.ID() == id {
				t.Errorf("%d: %v, %v", i, out, ok)
			}
		}
		if out, ok := g.tools.sessions.reserve(g.asks(t, ""), g.tools.server); out != nil || ok {
			t.Errorf("%v, %v, and all are being begun", out, ok)
		}
	})
}

// TestSessionThatGivesWay: no request enters it any more, which would be cut off, and it
// gives way to one alone; one that is used does not.
func TestSessionThatGivesWay(t *testing.T) {
	g := sessionsOf(t, maxSessions)
	s := &g.tools.sessions
	leave, ok := s.enter(g.asks(t, "0"), g.tools.server)
	if !ok {
		t.Fatal("no session")
	}
	defer leave()
	first, ok := s.reserve(g.asks(t, ""), g.tools.server)
	if !ok || first == nil || first.ID() == "0" {
		t.Fatalf("%v, %v", first, ok)
	}
	if second, ok := s.reserve(g.asks(t, ""), g.tools.server); !ok || second == nil || second.ID() == "0" || second.ID() == first.ID() {
		t.Errorf("%v, %v", second, ok)
	}
	w := httptest.NewRecorder()
	g.pass(timely{w}, g.asks(t, first.ID()))
	if text, _ := io.ReadAll(w.Body); w.Code != http.StatusNotFound {
		t.Errorf("%d: %s", w.Code, text)
	}
	first.Close()
}
