package main

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// noBatches is the version of the protocol from which on there are none. Those before
// have them received, and answered by one array.
const noBatches = "2025-06-18"

// owed is a call without its answer.
type owed struct {
	method string
	batch  *batch // nil for a call with a line of its own
}

// batch gathers the answers to the calls of one. A nil one is a single message.
type batch struct {
	mu      sync.Mutex // guards what follows
	left    int        // answers that are missing, and one until all calls are handed on
	answers [][]byte
}

func (b *batch) expect() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left++
	}
}

// add adds an answer, nil for none, and returns the array when it is the last.
func (b *batch) add(answer []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer != nil {
		b.answers = append(b.answers, answer)
	}
	if b.left--; b.left > 0 || len(b.answers) == 0 {
		return nil
	}
	return append(append([]byte("["), bytes.Join(b.answers, []byte(","))...), ']')
}

// reply writes the answer to a call, with those of its batch.
func (w *wire) reply(b *batch, answer []byte) error {
	if b != nil {
		answer = b.add(answer)
	}
	if answer == nil {
		return nil
	}
	return w.put(answer)
}

// passAll hands on all of a line.
func (w *wire) passAll(list []jsonrpc.Message, isBatch bool) bool {
	var b *batch
	if isBatch {
		b = &batch{left: 1}
		defer w.reply(b, nil)
	}
	for _, m := range list {
		if !w.pass(m, b) {
			return false
		}
	}
	return true
}

// batches says whether the client's protocol has batches, which it is asked for once:
// before the answer nobody knows.
func (w *wire) batches() bool {
	if !w.asked {
		return false
	}
	select {
	case <-w.greeted:
	case <-w.stopped:
	case <-w.closed:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version != "" && w.version < noBatches
}

// greet notes the version that an answer to initialize has.
func (w *wire) greet(r *jsonrpc.Response) {
	var said struct{ ProtocolVersion string }
	if r.Error == nil && json.Unmarshal(r.Result, &said) == nil {
		w.mu.Lock()
		w.version = said.ProtocolVersion
		w.mu.Unlock()
	}
	w.once.greet.Do(func() { close(w.greeted) })
}
