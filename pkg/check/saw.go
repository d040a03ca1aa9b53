package check

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// control is one promise and how it is proven.
type control struct {
	id, claim, layer string

	probe string                 // what runs inside
	args  func(b *bait) []string // its arguments
	spec  func(b *bait, s *sandbox.Spec)
	judge func(b *bait, s *saw) verdict
	// anyEnd: the probe need not come to its end.
	anyEnd bool
	// alone: it measures or counts, so nothing else runs beside it.
	alone bool
	// limit is what --allow-degraded calls the limit that this proves.
	limit string
	// whole replaces all of it where one sandbox is not enough.
	whole func(ctx context.Context, s *suite, c *control) verdict
}

// verdict is the judge's word.
type verdict struct {
	held, weak bool
	seen       string
}

func held(format string, args ...any) verdict {
	return verdict{held: true, seen: fmt.Sprintf(format, args...)}
}
func leak(format string, args ...any) verdict { return verdict{seen: fmt.Sprintf(format, args...)} }
func weak(format string, args ...any) verdict {
	return verdict{held: true, weak: true, seen: fmt.Sprintf(format, args...)}
}

// saw is what one sandbox came to.
type saw struct {
	res     sandbox.Result
	err     error
	out     []byte
	answers probes.Answers
}

// mostOutput bounds what a probe may answer.
const mostOutput = 4 << 20

// probeTime is what a probe has to come to its end: on a slow or busy host the
// default's ten seconds are not enough for all of them. c04 proves the limit itself.
const probeTime = time.Minute

// sandbox runs a control's probe under the default policy, but for its time.
func (s *suite) sandbox(ctx context.Context, c *control) *saw {
	var out, errOut bytes.Buffer
	spec := s.spec(c)
	spec.Stdout, spec.Stderr = &out, &errOut
	res, err := sandbox.Run(ctx, spec)
	out.Write(errOut.Bytes())
	return &saw{res: res, err: err, out: out.Bytes(), answers: probes.Parse(out.Bytes())}
}

func (s *suite) spec(c *control) sandbox.Spec {
	spec := sandbox.Default()
	spec.AllowDegraded = s.opt.AllowDegraded
	spec.Program.File = s.bait.program()
	spec.Program.Args = []string{c.probe}
	spec.Limits.Output, spec.Limits.Timeout = mostOutput, probeTime
	if c.args != nil {
		spec.Program.Args = append(spec.Program.Args, c.args(s.bait)...)
	}
	if c.spec != nil {
		c.spec(s.bait, &spec)
	}
	if s.opt.mutate != nil {
		s.opt.mutate(c.id, &spec)
	}
	return spec
}

// judge applies what holds for every control before the control's own rule: a
// probe has to come to its end, and the secret is nowhere in what it says.
func (s *suite) judge(c *control, w *saw) verdict {
	if w.err != nil {
		return leak("no sandbox: %v", w.err)
	}
	if bytes.Contains(w.out, []byte(s.bait.secret)) {
		return leak("the secret of the host: %s", w.where(s.bait.secret))
	}
	if !c.anyEnd && (w.res.Outcome != result.Exited || w.res.ExitCode != 0) {
		return leak("the probe ended with %s: %s", w.ending(), w.tail())
	}
	return c.judge(s.bait, w)
}

// where names the answer that has the secret.
func (w *saw) where(secret string) string {
	for _, key := range w.keys("") {
		if strings.Contains(w.answers[key], secret) {
			return key
		}
	}
	return "in its output"
}

func (w *saw) ending() string {
	return fmt.Sprintf("outcome %s, exit code %d, signal %d", w.res.Outcome, w.res.ExitCode, w.res.Signal)
}

func (w *saw) tail() string {
	return string(w.out[max(0, len(w.out)-200):])
}

// keys are the answers whose name starts with prefix, sorted.
func (w *saw) keys(prefix string) []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(w.answers)) {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	return keys
}

// only holds when there are answers that start with prefix and each of them is
// one of the allowed.
func (w *saw) only(prefix string, allowed ...string) verdict {
	keys := w.keys(prefix)
	if len(keys) == 0 {
		return leak("the probe did not say how %q went", prefix)
	}
	for _, k := range keys {
		if !slices.Contains(allowed, w.answers[k]) {
			return leak("%s: %s", k, w.answers[k])
		}
	}
	return held("%d attempts: %s", len(keys), strings.Join(allowed, " or "))
}

// both is the first verdict that does not hold, or the last.
func both(list ...verdict) verdict {
	for _, v := range list {
		if !v.held {
			return v
		}
	}
	return list[len(list)-1]
}

// is asks for exact answers: key, value, key, value.
func (w *saw) is(pairs ...string) verdict {
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, pairs[i]+": "+strings.TrimSpace(pairs[i+1]))
		if got, ok := w.answers[pairs[i]]; !ok || got != pairs[i+1] {
			return leak("%s: %q, not %q", pairs[i], got, pairs[i+1])
		}
	}
	return held("%s", strings.Join(list, ", "))
}

// enforced says what holds a limit, and whether it is the kernel.
func (w *saw) enforced(limit string) (result.Enforcer, bool) {
	by := w.res.Limits[limit].EnforcedBy
	return by, by == result.ByCgroup2 || by == result.ByCgroup1
}

// readBack is a field that the supervisor read of the live program.
func (w *saw) readBack(layer, field string) string {
	for _, l := range w.res.Layers {
		if l.Name == layer {
			return l.ReadBack[field]
		}
	}
	return ""
}
