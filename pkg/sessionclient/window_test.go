package sessionclient

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestWindow: what is not taken waits in the window that the session was told of, and
// the reader reads on, also when the streams' ends come beyond the window. What is taken
// is told, some at a time.
func TestWindow(t *testing.T) {
	features := `"window_bytes":500000,"window_pieces":40},"features":["window"]`
	c, err := Start(t.Context(), fake(t, `echo '`+strings.Replace(hello, `},"features":[]`, ","+features, 1)+`'
bad() { echo "{\"type\":\"error\",\"id\":\"1\",\"code\":\"malformed\",\"error\":\"$1\"}"; exec cat >/dev/null; }
read x; case "$x" in *'"output":"stream","window":500000}'*) ;; *) bad request;; esac
i=0; while [ $i -lt 42 ]; do echo '{"type":"output","id":"1","stream":"stdout","text":"a"}'; i=$((i+1)); done
read x; case "$x" in *'"window"'*) bad collected;; *'"run"'*) ;; *) bad "early $x";; esac
echo '{"type":"result","id":"2","result":{"outcome":"exited","exit_code":7}}'
for i in 1 2 3 4; do
  read x; test "$x" = '{"type":"more","id":"1","pieces":10}' || bad more
done
echo '{"type":"error","id":"1","to":"more","code":"unknown_id","error":"late"}'
echo '{"type":"result","id":"1","result":{"outcome":"exited","exit_code":8}}'
exec cat >/dev/null`))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.held = time.Hour
	begun, free, over, taken := make(chan struct{}), make(chan struct{}), make(chan struct{}), 0
	// Where the reader waits for the callback nobody is answered.
	release := sync.OnceFunc(func() { close(free) })
	defer time.AfterFunc(30*time.Second, func() { release(); c.kill() }).Stop()
	go func() {
		res, err := c.Run(t.Context(), Request{Command: []string{"yes"}}, func(Output) {
			if taken++; taken == 1 {
				close(begun)
				<-free
			}
		})
		defer close(over)
		if err != nil || res.ExitCode != 8 || taken != 42 {
			t.Errorf("%+v, %v, %d taken", res, err, taken)
		}
	}()
	select {
	case <-begun:
	case <-over:
		return // the session says what is wrong
	}
	if res, err := c.Run(t.Context(), Request{Command: []string{"true"}}, nil); err != nil || res.ExitCode != 7 {
		t.Errorf("%+v, %v", res, err)
	}
	release()
	<-over
}
