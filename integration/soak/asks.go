package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sandglass/pkg/result"
	"sandglass/pkg/sessionclient"
)

// request is the program of a job as a tool asks a session for it.
func (s *soak) request(e *ended) sessionclient.Request {
	j := e.job
	q := sessionclient.Request{Options: asOptions(j.flags)}
	switch {
	case j.code != "":
		q.Lang, q.Code = "python", j.code
	case j.prog:
		q.Command = append([]string{inside}, j.argv...)
	default:
		q.Command = j.argv
	}
	if !j.bare {
		name, value, _ := strings.Cut(mark(j.n), "=")
		q.Env = map[string]string{name: value}
	}
	if j.stdin != nil {
		q.Stdin = j.stdin(j.seed())
	}
	switch {
	case j.out && j.n%2 == 0:
		q.Inline = 1 << 20
	case j.out:
		q.Out = e.dir
	}
	if j.ask != nil {
		j.ask(&q, j.seed())
	}
	return q
}

// asOptions are flags of the command line as options of a request.
func asOptions(flags string) map[string]any {
	long := map[string]string{"-m": "memory", "-v": "volume"}
	list := map[string]any{}
	words := strings.Fields(flags)
	for i := 0; i < len(words); i++ {
		name := long[words[i]]
		if name == "" {
			name = strings.TrimPrefix(words[i], "--")
		}
		switch {
		case name == "-i": // the field stdin says it
		case i+1 == len(words) || strings.HasPrefix(words[i+1], "-"):
			list[name] = true
		case name == "allow-host" || name == "volume":
			i++
			values, _ := list[name].([]string)
			list[name] = append(values, words[i])
		default:
			i++
			list[name] = words[i]
		}
	}
	return list
}

// runSession has a session run the job, and every other one send the output as it
// comes. A refusal is an error reply, and so is a cancel before the start.
func (s *soak) runSession(ctx context.Context, e *ended) {
	j := e.job
	e.said, e.pid = true, j.to.pid
	out, errs := newOutput(), newOutput()
	take := func(o sessionclient.Output) {
		map[string]*output{"stdout": out, "stderr": errs}[o.Stream].Write(o.Data)
	}
	stream := j.end != waits || j.n%2 == 1
	if !stream {
		take = nil
	}
	asked, cancel := j.until(ctx, out)
	defer cancel()
	e.res, e.err = j.to.Run(asked, s.request(e), take)
	e.stdout, e.stderr = captured(e.res.Stdout), captured(e.res.Stderr)
	if stream {
		e.stdout, e.stderr = out.bytes(), errs.bytes()
	}
	var refused *sessionclient.Error
	switch {
	case j.end.cancel() && errors.Is(e.err, context.Canceled):
		if e.err = nil; e.res.Outcome == "" {
			e.res.Outcome, e.res.ExitCode = result.Canceled, result.ExitCanceled
		}
	case errors.As(e.err, &refused) && refused.Code == "refused":
		e.res.Outcome, e.res.ExitCode, e.res.Error, e.err = result.Refused, refused.ExitCode, refused.What, nil
	case e.err == nil && j.out && j.n%2 == 0:
		e.err = inline(e)
	}
}

// inline puts the artefacts that came with the result where a copy would be.
func inline(e *ended) error {
	for _, a := range e.res.Artifacts {
		path := filepath.Join(e.dir, a.Path)
		if !filepath.IsLocal(a.Path) || a.Type != "file" || a.Skipped != "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(a.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// asked are programs that only a session's client can have, those among them that
// an interpreter which waits can serve.
func (s *soak) asked() []*program {
	py := func(name, flags, code string, w want) *program {
		return &program{name: "python, " + name, flags: flags, code: code, bare: true, only: "session", want: w}
	}
	own := func(name string, w want, ask func(q *sessionclient.Request, seed uint64)) *program {
		return &program{name: name, argv: []string{"true"}, ask: ask, only: "session", want: w}
	}
	const all = "import os\nfor d in '/tmp', '/work', '/dev/shm', '/out': print(os.listdir(d)); open(d + '/x', 'w').write('x')\nprint([k for k in os.environ if 'SOAK' in k])"
	files := own("files", want{outcome: result.Exited, check: func(e *ended) string {
		return differs("stdout", string(e.stdout), fmt.Sprintf("text of %d\n\x00\xffd/text\n", e.job.seed()))
	}}, func(q *sessionclient.Request, seed uint64) {
		q.Command = []string{"sh", "-c", "cat d/text bytes; echo d/*"}
		q.Files = []sessionclient.File{{Path: "d/text", Data: []byte(fmt.Sprintf("text of %d\n", seed))}, {Path: "bytes", Data: []byte("\x00\xff")}}
	})
	refused := want{outcome: result.Refused, exit: 125}
	return []*program{
		py("hello", "", "print(6 * 7)", exits(0, "42\n")),
		py("fresh", "", all, exits(0, "[]\n[]\n[]\n[]\n[]\n")),
		py("memory hog", "", "x = []\nwhile True: x.append(bytearray(1 << 20))", want{outcome: result.Memory, exit: result.ExitMemory, check: s.memory}),
		py("for ever", "--timeout 5s", "print('begun', flush=True)\nwhile True: pass", want{outcome: result.Timeout, exit: result.ExitTimeout, stdout: "begun\n"}),
		py("kill(-1)", "", "import os\nfor i in range(3):\n  if os.fork() == 0:\n    while True: pass\nos.kill(-1, 9)\nprint('alone')", exits(0, "alone\n")),
		py("closed descriptors", "", "import os\nos.closerange(0, 1000)\nos._exit(5)", exits(5, "")),
		py("exit", "", "import sys\nsys.exit(9)", exits(9, "")),
		{name: "memory hog, C", flags: "", prog: true, argv: []string{"hog", "96"}, only: "session",
			want: want{outcome: result.Memory, exit: result.ExitMemory, check: s.memory}},
		{name: "closed descriptors", argv: []string{"sh", "-c", "exec <&- >&- 2>&-; exit 6"}, only: "session", want: exits(6, "")},
		files,
		own("malformed, NUL in a command", refused, func(q *sessionclient.Request, _ uint64) { q.Command = []string{"a\x00b"} }),
		own("malformed, file out of /work", refused, func(q *sessionclient.Request, _ uint64) { q.Files = []sessionclient.File{{Path: "../x"}} }),
		own("malformed, memory of a word", refused, func(q *sessionclient.Request, _ uint64) { q.Options = map[string]any{"memory": "much"} }),
		own("malformed, the session's own flag", refused, func(q *sessionclient.Request, _ uint64) {
			q.Options = map[string]any{"allow-degraded": "memory"}
		}),
	}
}
