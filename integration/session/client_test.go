package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
	"sandglass/pkg/sessionclient"
)

// TestGoClient: pkg/sessionclient with the real binary.
func TestGoClient(t *testing.T) {
	who := testkit.AsUser(t) // the client is this process, so whoever that is
	if os.Getuid() == 0 {
		who = testkit.AsRoot(t)
	}
	c, err := sessionclient.Start(t.Context(), sessionclient.Options{Path: testkit.Binary(t), Args: append(who.Flags(), "--max-running", "2", "--max-queued", "20", "--timeout", "1h")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			res, err := c.Run(t.Context(), sessionclient.Request{Lang: "sh", Code: "cat in; cat; echo $A $1 >&2; echo x >/out/y", Args: []string{fmt.Sprint(i)}, Env: map[string]string{"A": "b"},
				Stdin: []byte("\xff"), Files: []sessionclient.File{{Path: "in", Data: []byte("\x00")}}, Options: map[string]any{"memory": "64m", "timeout": 90 * time.Second}, Inline: 100}, nil)
			out, _ := res.Stdout.Captured()
			if err != nil || string(out) != "\x00\xff" || res.Stderr.Text != fmt.Sprintf("b %d\n", i) || res.Limits["memory"].Value != 64<<20 || res.Limits["timeout"].Value != 90_000 || len(res.Artifacts) != 1 || res.Artifacts[0].Text != "x\n" {
				t.Errorf("%d: %+v, %v", i, res, err)
			}
		})
	}
	wait.Wait()

	var text strings.Builder
	res, err := c.Run(t.Context(), sessionclient.Request{Command: []string{"sh", "-c", "echo one; echo two >&2; head -c 100000 /dev/zero"}}, func(o sessionclient.Output) {
		if o.Stream == "stdout" {
			text.Write(o.Data)
		}
	})
	if err != nil || text.String() != "one\n"+strings.Repeat("\x00", 100000) || res.Stdout.Text != "" || res.Stdout.Bytes != 100004 {
		t.Errorf("%d bytes, %+v, %v", text.Len(), res, err)
	}

	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	res, err = c.Run(ctx, sessionclient.Request{Command: []string{"sh", "-c", "echo; sleep 100000"}}, func(sessionclient.Output) { cancel(enough) })
	if err != enough || res.Outcome != result.Canceled {
		t.Errorf("%+v, %v", res, err)
	}
	var refused *sessionclient.Error
	if _, err = c.Run(t.Context(), sessionclient.Request{Command: []string{"no-such-command"}}, nil); !errors.As(err, &refused) || refused.Code != "refused" || refused.ExitCode != 127 {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Run(t.Context(), sessionclient.Request{Command: []string{"true"}}, nil); !errors.Is(err, sessionclient.ErrClosed) {
		t.Errorf("%v", err)
	}
}
