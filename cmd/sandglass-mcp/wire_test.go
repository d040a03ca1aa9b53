package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestCallWithoutEnd: after the end of the requests a call that goes on is overdue,
// and its answer is the end of the connection.
func TestCallWithoutEnd(t *testing.T) {
	var out strings.Builder
	w := newWire(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`), &out, time.Millisecond)
	for range 2 {
		if _, err := w.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	end := make(chan error, 1)
	go func() {
		_, err := w.Read(context.Background())
		end <- err
	}()
	select {
	case <-w.overdue:
	case err := <-end:
		t.Fatalf("the end before the answer: %v", err)
	}
	id, err := jsonrpc.MakeID(float64(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := <-end; err != io.EOF {
		t.Error(err)
	}
	if got := out.String(); got != `{"jsonrpc":"2.0","id":2,"result":{}}`+"\n" {
		t.Errorf("%q", got)
	}
}

// TestStopWithAMessageLeft: a message that nobody took any more is no part of what
// the end waits for.
func TestStopWithAMessageLeft(t *testing.T) {
	w := newWire(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`), io.Discard, time.Hour)
	w.stop()
	<-w.read // the one message was not taken
	if m, err := w.Read(t.Context()); m != nil || err != io.EOF {
		t.Errorf("%v, %v", m, err)
	}
}
