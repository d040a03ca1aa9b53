package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
	"sandglass/pkg/sessionclient"
)

// TestWindow: a flood whose client takes no more than its window holds up nobody
// else's answer, its time limit goes on, and then nothing of it is lost.
func TestWindow(t *testing.T) {
	who := testkit.AsUser(t)
	c := open(t, who, "--max-running", "2")
	const window = 64 << 10
	marker := fmt.Sprintf("8%d", os.Getpid())
	c.sh("flood", "while :; do echo flood; done; sleep "+marker, fmt.Sprintf(`,"output":"stream","window":%d,"options":{"timeout":"3s","output-limit":"64m"}`, window))
	c.want("started", "flood")
	text, pieces, answers := 0, 0, 0
	take := func(r reply) {
		pieces++
		text += len(r.Text)
	}
	c.sh("quick", "echo quick", "")
	for answers < 20 { // its output and theirs come together, until its window is full
		switch r := c.read(); r.Type {
		case "output":
			take(r)
		case "result":
			if answers++; r.ID != "quick" || r.Result.Stdout.Text != "quick\n" {
				t.Fatalf("%+v", r)
			}
			c.sh("quick", "echo quick", "")
		default:
			t.Fatalf("%+v", r)
		}
	}
	if text > window {
		t.Errorf("%d bytes came, and the window has %d", text, window)
	}
	gone(t, marker) // by its time limit
	for {
		if pieces > 0 {
			c.send(`{"type":"more","id":"flood","pieces":%d}`, pieces)
			pieces = 0
		}
		r := c.read()
		if r.Type == "output" {
			take(r)
		} else if r.ID == "flood" && r.Type == "result" {
			if r.Result.Outcome != result.Timeout || r.Result.Error != "" || r.Result.Stdout.Kept != int64(text) {
				t.Errorf("%d bytes came of %+v", text, r.Result)
			}
			break
		}
	}
	// The last room may have been for a run that had ended, and one was still asked.
	c.send(`{"type":"cancel","id":"quick"}`)
	c.send(`{"type":"cancel","id":"last"}`)
	for r := c.read(); r.ID != "last"; r = c.read() {
		if r.To != "more" && r.ID != "quick" {
			t.Errorf("%+v", r)
		}
	}
	c.close()
}

// TestGoClientWindow: a callback that does not return holds up its own run alone.
func TestGoClientWindow(t *testing.T) {
	who := testkit.AsUser(t) // the client is this process, so whoever that is
	if os.Getuid() == 0 {
		who = testkit.AsRoot(t)
	}
	c, err := sessionclient.Start(t.Context(), sessionclient.Options{Path: testkit.Binary(t), Args: append(who.Flags(), "--max-running", "2", "--timeout", "1h")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	begun, free, over, taken := make(chan struct{}), make(chan struct{}), make(chan error, 1), 0
	go func() {
		_, err := c.Run(ctx, sessionclient.Request{Command: []string{"yes"}, Options: map[string]any{"output-limit": "10g"}}, func(o sessionclient.Output) {
			if taken == 0 {
				close(begun)
				<-free
			}
			if taken += len(o.Data); taken > 4<<20 { // more than waits here: room comes back
				cancel(enough)
			}
		})
		over <- err
	}()
	<-begun
	for range 20 {
		if res, err := c.Run(t.Context(), sessionclient.Request{Command: []string{"echo", "hi"}}, nil); err != nil || res.Stdout.Text != "hi\n" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	close(free)
	if err := <-over; err != enough || taken <= 4<<20 {
		t.Errorf("%v, %d taken", err, taken)
	}
}
