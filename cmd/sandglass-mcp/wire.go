package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandglass/internal/lines"
)

// wire is the connection over stdin and stdout. The SDK's own ends with the first
// line that is no message, and drops every call that is under way then; and at the
// end of the requests it cancels what is not answered yet. Here such a line is
// answered, the next one is read, and the end comes after the last answer.
type wire struct {
	out   io.Writer
	grace time.Duration

	messages chan jsonrpc.Message
	read     chan struct{} // closed when no message follows, for the reason why
	why      error
	stopped  chan struct{} // closed by stop
	overdue  chan struct{} // closed when calls were open for grace after the last message
	closed   chan struct{}
	once     struct{ stop, close, greet sync.Once }

	writing sync.Mutex // one message at a time

	mu      sync.Mutex
	open    map[jsonrpc.ID]owed // the calls that have no answer
	changed chan struct{}       // has a token when open has changed
	version string              // of the protocol, "" before initialize is answered

	asked   bool          // initialize was read; pump's alone
	greeted chan struct{} // closed when it is answered
}

func newWire(in io.Reader, out io.Writer, grace time.Duration) *wire {
	w := &wire{
		out: out, grace: grace, why: io.EOF, messages: make(chan jsonrpc.Message), read: make(chan struct{}), stopped: make(chan struct{}),
		overdue: make(chan struct{}), closed: make(chan struct{}), open: map[jsonrpc.ID]owed{}, changed: make(chan struct{}, 1), greeted: make(chan struct{}),
	}
	go w.pump(lines.New(in, messageBytes))
	return w
}

// Connect makes it a transport, of this one connection.
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

func (w *wire) SessionID() string { return "" }

// pump takes every line. What is no message is answered here.
func (w *wire) pump(from *lines.Reader) {
	defer close(w.read)
	for {
		line, err := from.Next()
		switch {
		case err == lines.ErrTooLong:
			w.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the line is longer than %d bytes", messageBytes))
			continue
		case err != nil:
			w.why = err
			return
		}
		if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			w.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON")
			continue
		}
		list, batch, err := decode(bytes.Clone(line)) // the next line comes into its place
		if err == nil && batch && !w.batches() {
			err = errors.New("there are no batches from protocol " + noBatches + " on: each message has a line of its own")
		}
		if err != nil {
			w.refuse(idOf(line), jsonrpc.CodeInvalidRequest, err.Error())
			continue
		}
		if !w.passAll(list, batch) {
			return
		}
	}
}

// pass hands on one message, unless its answer could not be told from another's. The
// answer goes to b, nil for a line of its own.
func (w *wire) pass(m jsonrpc.Message, b *batch) bool {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		w.mu.Lock()
		_, twice := w.open[r.ID]
		if !twice {
			w.open[r.ID] = owed{r.Method, b}
		}
		w.mu.Unlock()
		b.expect()
		if twice {
			w.reply(b, problem(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a call with the id %.64q is not answered yet", fmt.Sprint(r.ID.Raw()))))
			return true
		}
		w.asked = w.asked || r.Method == "initialize"
	}
	select {
	case w.messages <- m:
		return true
	case <-w.stopped:
	case <-w.closed:
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		w.answered(r.ID) // never: it was not accepted
		w.reply(b, nil)
	}
	return false
}

// answered has a call owe nothing, and says what it did.
func (w *wire) answered(id jsonrpc.ID) (o owed) {
	w.mu.Lock()
	o = w.open[id]
	delete(w.open, id)
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return o
}

// idOf is the id of what was meant for a call, nil for none: its sender waits for an
// answer with it.
func idOf(line []byte) any {
	var call struct {
		ID     json.RawMessage // as it is: a float64 has 53 bits
		Method any
	}
	if json.Unmarshal(line, &call) != nil || call.Method == nil || len(call.ID) == 0 {
		return nil
	}
	if c := call.ID[0]; c == '"' || c == '-' || '0' <= c && c <= '9' {
		return call.ID
	}
	return nil
}

// refuse answers what is no message. A write that fails is a reader that has gone,
// which main watches for.
func (w *wire) refuse(id any, code int64, what string) {
	w.put(problem(id, code, what))
}

func (w *wire) put(b []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	_, err := w.out.Write(append(b, '\n'))
	return err
}

// Read is the next message. Its end comes when every call is answered.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-w.messages:
		return m, nil
	case <-w.read:
	case <-w.stopped:
	case <-w.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timer := time.AfterFunc(w.grace, func() { close(w.overdue) })
	defer timer.Stop()
	for w.owes() {
		select {
		case <-w.changed:
		case <-w.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-w.read:
		return nil, w.why
	default:
		return nil, io.EOF
	}
}

// owes says whether a call waits for its answer. A subscription has none until its
// connection ends.
func (w *wire) owes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(w.open)), func(o owed) bool { return o.method != "subscriptions/listen" })
}

// Write sends a message. The id is free before its reader can know.
func (w *wire) Write(_ context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		if err != nil {
			return err
		}
		return w.put(b)
	}
	o := w.answered(r.ID)
	if err != nil {
		w.reply(o.batch, nil)
		return err
	}
	if o.method == "initialize" {
		w.greet(r)
	}
	return w.reply(o.batch, b)
}

// stop has no more messages taken; what is open is answered still.
func (w *wire) stop() { w.once.stop.Do(func() { close(w.stopped) }) }

// Close leaves stdout open: the client reads its last answers.
func (w *wire) Close() error {
	w.once.close.Do(func() { close(w.closed) })
	return nil
}
