package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"sandglass/pkg/result"
)

// raw is a session of one client, which writes its lines itself and may end badly.
type raw struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
	r   *bufio.Reader
	e   *ended
}

// reply is any line of a session's.
type reply struct {
	Type, ID, Code, Text, Base64 string
	Result                       result.Result
}

// raw starts a session of the job's own.
func (s *soak) raw(ctx context.Context, e *ended, flags ...string) (*raw, error) {
	cmd := exec.CommandContext(ctx, s.o.sandglass, append(append([]string{"session"}, s.sessionFlags()...), flags...)...)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.WaitDelay = s.dir, os.Environ(), os.Stderr, 30*time.Second
	r := &raw{cmd: cmd, e: e}
	var err error
	if r.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if r.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e.pid = cmd.Process.Pid
	r.r = bufio.NewReader(r.out)
	if hello := r.next(); hello.Type != "hello" {
		return nil, fmt.Errorf("the session said %+v", hello)
	}
	return r, nil
}

// sh asks for a shell script; more are further fields.
func (r *raw) sh(id, script, more string) {
	text, _ := json.Marshal(script)
	name, value, _ := strings.Cut(mark(r.e.job.n), "=")
	r.line(fmt.Sprintf(`{"type":"run","id":%q,"command":["sh","-c",%s],"env":{%q:%q}%s}`, id, text, name, value, more))
}

func (r *raw) line(text string) { io.WriteString(r.in, text+"\n") }

// next is the next reply, empty at the end.
func (r *raw) next() (p reply) {
	for p.Type == "" || p.Type == "ready" { // which comes when there was time for it
		line, err := r.r.ReadBytes('\n')
		if err == nil {
			p = reply{}
			err = json.Unmarshal(line, &p)
		}
		if err != nil {
			return reply{Type: "end of replies"}
		}
	}
	if p.Base64 != "" {
		b, _ := base64.StdEncoding.DecodeString(p.Base64)
		p.Text = string(b)
	}
	return p
}

// last reads the last replies of n runs and errors, as "ID CODE", "ID OUTCOME TEXT".
func (r *raw) last(n int) string {
	var list []string
	for len(list) < n {
		switch p := r.next(); p.Type {
		case "result":
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.ID, p.Result.Outcome, p.Result.Stdout.Text)))
		case "error":
			list = append(list, p.ID+" "+p.Code)
		case "started", "output":
		default:
			list = append(list, make([]string, n)...)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// ready starts sleepers and waits until each has said so.
func (r *raw) ready(ids ...string) string {
	for _, id := range ids {
		r.sh(id, "(setsid sleep 1000 &); echo ready; sleep 1000", `,"output":"stream"`)
	}
	for left := len(ids); left > 0; {
		switch p := r.next(); p.Type {
		case "output":
			left--
		case "started":
		default:
			return fmt.Sprintf("%+v instead of a start", p)
		}
	}
	return ""
}

// ends waits for the session's end: no process of its runs may be there then, unless
// it was killed.
func (r *raw) ends(exit int) string {
	r.in.Close()
	r.cmd.Wait()
	if got := exitCode(r.cmd.ProcessState); got != exit {
		return fmt.Sprintf("the session's exit code is %d, want %d", got, exit)
	}
	if left := marked(mark(r.e.job.n)); !r.e.outlived && len(left) > 0 {
		return fmt.Sprintf("at the session's end there are still %q", left)
	}
	return ""
}

// acts are the ends of sessions, and lines that no library would send.
func acts() []*program {
	act := func(name string, flags string, f func(r *raw) string) *program {
		return &program{name: "session, " + name, only: "session", act: func(s *soak, ctx context.Context, e *ended) string {
			r, err := s.raw(ctx, e, strings.Fields(flags)...)
			if err != nil {
				return err.Error()
			}
			return f(r)
		}}
	}
	return []*program{
		act("its client dies", "--max-running 3", func(r *raw) string {
			why := r.ready("a", "b", "c")
			r.in.Close()
			r.out.Close()
			return first(why, r.ends(141))
		}),
		act("killed", "--max-running 3 --warm command=1", func(r *raw) string {
			why := r.ready("a", "b", "c")
			r.e.outlived = true // only the kernel, and the next run, clean up
			r.cmd.Process.Kill()
			return first(why, r.ends(137))
		}),
		act("end of requests", "--max-running 2 --warm command=1", func(r *raw) string {
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				r.sh(id, "echo "+id, "")
			}
			r.in.Close()
			why := differs("replies", r.last(5), "a exited a, b exited b, c exited c, d exited d, e exited e")
			return first(why, differs("the end", r.next().Type, "end of replies"), r.ends(0))
		}),
		act("SIGTERM", "--max-running 2", func(r *raw) string {
			why := r.ready("a", "b")
			r.sh("c", "echo c", "")
			r.line(`{"type":"cancel","id":"nobody"}`)
			if p := r.next(); p.Code != "unknown_id" { // what was before it is accepted
				why = first(why, fmt.Sprintf("%+v", p))
			}
			r.cmd.Process.Signal(syscall.SIGTERM)
			return first(why, differs("replies", r.last(3), "a canceled, b canceled, c closing"), r.ends(143))
		}),
		act("busy", "--max-running 1 --max-queued 1", func(r *raw) string {
			why := r.ready("a")
			for _, id := range []string{"b", "c", "b"} {
				r.sh(id, "echo "+id, "")
			}
			why = first(why, differs("replies", r.last(2), "b duplicate_id, c busy"))
			for _, id := range []string{"b", "a"} {
				r.line(`{"type":"cancel","id":"` + id + `"}`)
			}
			return first(why, differs("replies", r.last(2), "a canceled, b canceled"), r.ends(0))
		}),
		act("malformed lines", "--max-running 1", malformed),
		act("slow reader", "--max-running 2", slowly),
	}
}

// malformed sends lines beside a run, which they must not harm.
func malformed(r *raw) string {
	why := r.ready("good")
	for _, l := range []struct{ line, want string }{
		{"nonsense", " malformed"},
		{`{"type":"run","id":"x"`, "x malformed"},
		{`{"type":"run","id":"x","id":"y","command":["true"]}`, "x malformed"},
		{`{"id":"x","type":"run","code":"\ud800","lang":"sh"}`, "x malformed"},
		{"{\"id\":\"x\",\"type\":\"run\",\"code\":\"\xff\",\"lang\":\"sh\"}", " malformed"},
		{`{"id":"x","type":"exec"}`, "x unknown_type"},
		{`{"id":"good","type":"run","command":["true"]}`, "good duplicate_id"},
		{strings.Repeat("[", 1<<20), " malformed"},
		{`{"id":"x","type":"run","command":["` + strings.Repeat("x", 16<<20) + `"]}`, " too_large"},
	} {
		r.line(l.line)
		why = first(why, differs(fmt.Sprintf("the answer to %.40q", l.line), r.last(1), l.want))
	}
	r.line(`{"type":"cancel","id":"good"}`)
	return first(why, differs("replies", r.last(1), "good canceled"), r.ends(0))
}

// slowly reads a stream in small pieces with pauses, beside a run whose time limit
// must not wait for that.
func slowly(r *raw) string {
	r.sh("flood", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", longOutput), `,"output":"stream"`)
	r.sh("late", "sleep 1000", `,"options":{"timeout":"500ms"}`)
	const piece = 2 << 10
	r.r = bufio.NewReaderSize(&pausing{r.out}, piece)
	text, outcomes := 0, map[string]result.Outcome{}
	for len(outcomes) < 2 {
		switch p := r.next(); p.Type {
		case "output":
			text += len(p.Text)
		case "result":
			outcomes[p.ID] = p.Result.Outcome
		case "started":
		default:
			return fmt.Sprintf("%+v", p)
		}
	}
	got := fmt.Sprintf("%d bytes, %s, %s", text, outcomes["flood"], outcomes["late"])
	return first(differs("it", got, fmt.Sprintf("%d bytes, exited, timeout", longOutput)), r.ends(0))
}

// pausing waits before each piece.
type pausing struct{ from io.Reader }

func (p *pausing) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return p.from.Read(b)
}

// first is the first that is wrong.
func first(why ...string) string {
	for _, w := range why {
		if w != "" {
			return w
		}
	}
	return ""
}
