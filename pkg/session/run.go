package session

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// run is one request that was accepted.
type run struct {
	server *server
	request
	size int64

	ctx  context.Context
	stop context.CancelFunc // nil while it waits

	credit *window // of its output

	over bool // its last line is out; guarded by the writer's turn

	outputs        [2]*output
	stdout, stderr result.Capture
}

// perform is a run from its turn to its last reply.
func (r *run) perform() {
	s := r.server
	defer r.stop()
	spec, err := r.spec()
	if err != nil {
		s.unboxed()
		r.last(refused(r.id, typeRun, err).line())
		return
	}
	if r.stream {
		r.event(startedLine(r.id))
	}
	res, _ := s.c.Run(r.ctx, spec) // the result has the error too
	s.unboxed()
	if res.Outcome == result.Refused {
		r.last(refused(r.id, typeRun, &refusal.Error{What: res.Error, Hints: res.Hints, Exit: res.ExitCode}).line())
		return
	}
	r.answer(&res)
}

// spec is what the request asks for, with its streams.
func (r *run) spec() (sandbox.Spec, error) {
	p, err := r.server.c.Defaults.Spec(r.Request)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{Spec: p, Stdin: bytes.NewReader(r.stdin), Stdout: &r.stdout, Stderr: &r.stderr}
	if r.stream {
		r.outputs = [2]*output{{run: r, stream: "stdout"}, {run: r, stream: "stderr"}}
		spec.Stdout, spec.Stderr = r.outputs[0], r.outputs[1]
	} else if most := int64(MaxCollected); p.Limits.Output > most {
		return spec, refusal.Newf("--output-limit: %s is too much to collect: at most %s", policy.FormatSize(p.Limits.Output), policy.FormatSize(most)).
			Hint(`"output": "stream"`).Hint("--output-limit %s", policy.FormatSize(most))
	}
	return spec, nil
}

// answer sends the result, after all output.
func (r *run) answer(res *sandbox.Result) {
	if r.stream {
		r.outputs[0].flush()
		r.outputs[1].flush()
	} else {
		res.Stdout.Attach(&r.stdout)
		res.Stderr.Attach(&r.stderr)
	}
	r.end(func(w io.Writer) {
		w.Write(resultHead(r.id)) // an error ends the session, by the writer itself
		res.WriteTo(oneLine{w})
	})
}

// last sends a whole line as the last one.
func (r *run) last(line []byte) {
	r.end(func(w io.Writer) { w.Write(line[:len(line)-len(lastBytes)]) })
}

// lastBytes end every line.
const lastBytes = "}\n"

// end sends the last line of a run, which put writes but for lastBytes. The run
// keeps its place until then, so that results which nobody reads are never more
// than Config.Running; and it gives it up before them, so that who has read the
// line finds the place and the id free.
func (r *run) end(put func(io.Writer)) {
	s := r.server
	defer s.answered()
	if s.w.hold() != nil {
		s.done(r)
		return
	}
	defer s.w.release()
	r.over = true
	w := bufio.NewWriterSize(s.w, gathered)
	put(w)
	s.done(r)
	w.WriteString(lastBytes)
	w.Flush()
}

// gathered is how much of a last line is written at once: a short one is one call,
// and its reader is woken once.
const gathered = 8 << 10
