// Package check proves the controls on this host: it does the forbidden things
// inside real sandboxes of the default policy and looks from outside at what
// came of them.
//
// The first four controls are the acceptance check of a rule of the Agent
// Wranglers application security playbook (CC BY 4.0): run code that prints
// the environment, reads /etc/hostname, calls https://test.example.org and
// loops for ever; no secret appears, the request never arrives, the loop is
// stopped at the limit.
//
//	<a href="https://agentwranglers.se/playbook/application-security/ai-features-and-agents/sandbox-model-code">Agent Wranglers application security playbook</a>
//
// What decides is the host's side wherever it can see: the verdict of the
// supervisor, counters of the kernel, bait that was laid out and must lie there
// untouched. Only where nothing shows outside, such as a refused system call,
// the error that the probe met is taken, and it must be exactly the right one:
// a probe that says nothing proves nothing.
package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"sandglass/internal/refusal"
	"sandglass/pkg/check/probes"
	"sandglass/pkg/sandbox"
)

// Options are what the caller may choose.
type Options struct {
	// AllowDegraded names limits that this host may hold by less: memory, cpu,
	// pids, io. Their lines are then weak and count as held.
	AllowDegraded []string

	// mutate takes a control away, for tests of check itself.
	mutate func(id string, s *sandbox.Spec)
}

// Line is what became of one control. The JSON form and the ids are stable.
type Line struct {
	ID    string `json:"id"`
	Claim string `json:"claim"`
	Held  bool   `json:"held"`
	Seen  string `json:"seen"`
	Layer string `json:"layer"`
	Weak  bool   `json:"weak,omitempty"` // held by less, which the caller allowed by name
}

// String is the line for people. What was seen is quoted where it is not
// plain text, since a probe's words come from inside.
func (l Line) String() string {
	if !l.Held {
		return fmt.Sprintf("FAIL  %s  %s: %s", l.ID, l.Claim, printable(l.Seen))
	}
	word := "ok"
	if l.Weak {
		word = "weak"
	}
	text := fmt.Sprintf("%-4s  %s  %s", word, l.ID, l.Claim)
	if l.Weak {
		text += ": " + printable(l.Seen)
	}
	return text
}

// printable keeps control characters away from the terminal.
func printable(s string) string {
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	q := strconv.QuoteToGraphic(s)
	if q == `"`+s+`"` {
		return s
	}
	return q
}

// Held says that every control held, or is weak where that was allowed. None
// at all is not held.
func Held(lines []Line) bool {
	return len(lines) > 0 && !slices.ContainsFunc(lines, func(l Line) bool { return !l.Held })
}

// WriteJSON prints the lines as one JSON object.
func WriteJSON(w io.Writer, lines []Line) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Schema int    `json:"schema"`
		Held   bool   `json:"held"`
		Checks []Line `json:"checks"`
	}{1, Held(lines), lines})
}

// Init must be called in main after sandbox.Init: the binary that runs a check
// also is what runs inside, and the supervisor that gets killed.
func Init() {
	if probes.Wanted() {
		probes.Main()
	}
	if victimWanted() {
		victimMain()
	}
}

// Run proves every control, two at a time where they do not disturb each other,
// and calls each in the order of the list. It lays out bait in the environment
// and the descriptors of this process while it runs. The error is a
// *refusal.Error: sandboxes cannot be started here at all.
func Run(ctx context.Context, o Options, each func(Line)) ([]Line, error) {
	s := &suite{opt: o}
	var err error
	if s.bait, err = layOut(); err != nil {
		return nil, refusal.Newf("laying out what the probes look for: %v", err)
	}
	defer s.bait.remove()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	// Not before: on cgroup v2 a delegated group may hold the caller alone
	// until its first sandbox has moved it to a leaf, where children then are.
	if err := s.bait.startPrey(); err != nil {
		return nil, refusal.Newf("starting a process to be killed: %v", err)
	}
	lines := s.all(ctx, each)
	if ctx.Err() != nil {
		return lines, refusal.Newf("the check was interrupted")
	}
	return lines, nil
}

// suite is one check in progress.
type suite struct {
	opt  Options
	bait *bait
}

// start finds out whether sandboxes can be started here.
func (s *suite) start(ctx context.Context) error {
	saw := s.sandbox(ctx, &control{id: "start", probe: "hello"})
	switch {
	case saw.err != nil:
		r := refusal.Newf("%s", saw.res.Error)
		r.Hints = saw.res.Hints
		return r
	case saw.answers["hello"] != probes.Done:
		return refusal.Newf("a sandbox was started, but its program ended with %s", saw.ending())
	}
	return nil
}

// all runs the list: first what can run side by side, then the others.
func (s *suite) all(ctx context.Context, each func(Line)) []Line {
	list := controls()
	done := make([]chan Line, len(list))
	for i := range done {
		done[i] = make(chan Line, 1)
	}
	go func() {
		s.batch(ctx, list, done, 2, func(c *control) bool { return !c.alone })
		s.batch(ctx, list, done, 1, func(c *control) bool { return c.alone })
	}()
	lines := make([]Line, len(list))
	for i := range list {
		lines[i] = <-done[i]
		if each != nil && ctx.Err() == nil {
			each(lines[i])
		}
	}
	return lines
}

func (s *suite) batch(ctx context.Context, list []control, done []chan Line, workers int, want func(*control) bool) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, workers)
	for i := range list {
		if !want(&list[i]) {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			done[i] <- s.one(ctx, &list[i])
			<-slots
		})
	}
	wait.Wait()
}

// one proves one control.
func (s *suite) one(ctx context.Context, c *control) Line {
	var v verdict
	switch {
	case ctx.Err() != nil:
		v = leak("not tried: %v", ctx.Err())
	case c.whole != nil:
		v = c.whole(ctx, s, c)
	default:
		v = s.judge(c, s.sandbox(ctx, c))
	}
	if v.weak && !slices.Contains(s.opt.AllowDegraded, c.limit) {
		v.held, v.weak = false, false
	}
	return Line{ID: c.id, Claim: c.claim, Layer: c.layer, Held: v.held, Weak: v.held && v.weak, Seen: v.seen}
}
