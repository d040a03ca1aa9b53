package sessionclient

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sandglass/pkg/result"
)

// Hello is what a session says first.
type Hello struct {
	Version   string
	Limits    map[string]int64
	Features  []string
	Languages []string
}

// Output is a piece of a program's output.
type Output struct {
	Stream string // stdout or stderr
	Data   []byte
}

// reply is any line of a session's.
type reply struct {
	Type, ID, To, Stream, Code, Error string
	Text, Base64                      string
	Hints                             []string
	ExitCode                          int `json:"exit_code"`
	Protocol                          int
	Result                            result.Result
	Hello
}

// The bounds of a line: of the first one, and of what a result has beside output
// and artifacts.
const (
	helloBytes = 1 << 20
	restBytes  = 64 << 20
)

// read takes every reply until the session ends, and then tells all who wait.
func (c *Client) read(out io.Reader, greeted chan<- struct{}) {
	in, most, hello := bufio.NewReaderSize(out, 64<<10), helloBytes, false
	var failure error
	for {
		line, err := readLine(in, most)
		if err != nil {
			if err != io.EOF {
				failure = err
			}
			break
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			failure = fmt.Errorf("a reply that cannot be read: %v", err)
			break
		}
		if !hello {
			if r.Type != "hello" || r.Protocol != Protocol {
				failure = fmt.Errorf("the session speaks protocol %d, and this program %d", r.Protocol, Protocol)
				break
			}
			hello, c.Hello = true, r.Hello
			// A byte of output is six at most: \u0000.
			most = int(6*(2*r.Limits["collect_bytes"]+r.Limits["inline_bytes"])) + restBytes
			close(greeted)
			continue
		}
		if failure = c.take(&r); failure != nil {
			break
		}
	}
	c.over(failure, hello)
}

// take gives one reply to the run that it is for.
func (c *Client) take(r *reply) error {
	c.mu.Lock()
	run := c.runs[r.ID]
	c.mu.Unlock()
	switch r.Type {
	case "ready":
		select {
		case <-c.ready: // it is said once
		default:
			close(c.ready)
		}
	case "output":
		if run == nil {
			return nil
		}
		p := Output{Stream: r.Stream, Data: []byte(r.Text)}
		if r.Base64 != "" {
			var err error
			if p.Data, err = base64.StdEncoding.DecodeString(r.Base64); err != nil {
				return err
			}
		}
		c.give(run, p)
	case "result", "error":
		if r.Type == "error" && (r.To == "cancel" || r.To == "more") {
			return nil // the run was quicker
		}
		if run == nil {
			return fmt.Errorf("a reply that is about no run: %s", r.Error)
		}
		c.mu.Lock()
		delete(c.runs, r.ID)
		c.mu.Unlock()
		run.last = *r
		close(run.done)
	}
	return nil
}

// give waits until there is room for a piece, or nobody who wants it, or others have
// waited behind it for too long.
func (c *Client) give(r *run, p Output) {
	select {
	case <-r.stop:
		r.dropped = true
		return
	case <-r.gone:
		return
	case <-r.lost:
		return
	default:
	}
	since, look := time.Now(), time.NewTicker(c.held/40)
	defer look.Stop()
	for {
		select {
		case r.pieces <- p:
			return
		case <-r.gone:
			return
		case <-r.stop:
			r.dropped = true
			return
		case <-c.quit:
			select {
			case r.pieces <- p: // there is room
			default:
				r.dropped = true
			}
			return
		case <-look.C:
			if time.Since(since) >= c.held && c.others() {
				r.dropped = true
				close(r.lost)
				go c.cancel(r.id) // not here: what the session says meanwhile has to be taken
				return
			}
		}
	}
}

// others says whether more than one run waits for its replies.
func (c *Client) others() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs) > 1
}

// over is the end of the session, for failure or by itself.
func (c *Client) over(failure error, greeted bool) {
	if failure != nil {
		c.cmd.Process.Kill()
	}
	c.cmd.Wait()
	c.mu.Lock()
	if c.dead = c.why(greeted); failure != nil {
		c.dead = errors.Join(ErrClosed, failure)
	}
	left := c.runs
	c.runs = map[string]*run{}
	c.mu.Unlock()
	for _, r := range left {
		r.err = c.dead
		close(r.done)
	}
	close(c.ended)
}

// readLine reads a line of bounded length. One without its newline is the end of
// a session that was killed, and no reply.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, fmt.Errorf("a reply is longer than %d bytes", most)
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// tail keeps the end of what is written, without ever making its writer wait.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text) - tailBytes; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(b), nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.FieldsFunc(string(t.text), func(r rune) bool { return r == '\n' })
}
