package main

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// calls are the HTTP requests that are under way. The SDK ends a call with its
// request only from the protocol of 2026-07-28 on; with an older one the program of
// a client that has hung up would run to its limits, for an answer that nobody can
// get: nothing is kept for a client that comes back.
type calls struct {
	mu   sync.Mutex
	last uint64
	live map[string]context.Context
}

// callHeader tells a tool which request it was called by. The SDK hands on all
// headers; one of the client's own by this name is replaced.
const callHeader = "Sandglass-Call"

// enter notes a request until leave is called.
func (c *calls) enter(r *http.Request) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id := strconv.FormatUint(c.last, 10)
	if c.live == nil {
		c.live = map[string]context.Context{}
	}
	c.live[id] = r.Context()
	r.Header.Set(callHeader, id)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.live, id)
	}
}

// tie ends ctx with the request that the call came by. Over stdio there is none.
func (c *calls) tie(ctx context.Context, req *mcp.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if req.Extra == nil || req.Extra.Header == nil {
		return ctx, cancel
	}
	c.mu.Lock()
	from := c.live[req.Extra.Header.Get(callHeader)]
	c.mu.Unlock()
	if from == nil { // it was quicker
		cancel()
		return ctx, cancel
	}
	stop := context.AfterFunc(from, cancel)
	return ctx, func() { stop(); cancel() }
}
