package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/launch"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/runtimes"
	"sandglass/pkg/wire"
)

// Held is a sandbox that was made before there is a program for it. It runs one
// program and is gone then, as every sandbox. It is used by one goroutine at a
// time, and ends by Close, whether it was run or not.
type Held struct {
	frame  string
	lang   string
	plan   *plan.Plan
	runner *runner
	hold   *launch.Hold
	stop   context.CancelFunc
	ending chan *launch.Ending
	end    *launch.Ending // of one that was run
	closed bool
}

// Prepare makes a sandbox under the policy of s that waits for its program, for
// idle at most, and while ctx lasts. With lang "" it waits before the program's
// process is made, and runs whatever it is given. Otherwise it is for code of
// that language (see runtimes.Waits): the interpreter runs already, under the
// whole policy, and waits for its text.
func Prepare(ctx context.Context, s Spec, lang string, idle time.Duration) (*Held, error) {
	waits := wire.InitWaits
	if lang != "" {
		waits = wire.ProgramWaits
	}
	forLang(&s, lang)
	if err := mayWait(&s, lang); err != nil {
		return nil, err
	}
	self, p, err := begin(&s, nil)
	if err != nil {
		return nil, err
	}
	h := &Held{frame: s.Frame(), lang: lang, plan: p, hold: launch.NewHold(waits, idle), ending: make(chan *launch.Ending, 1)}
	h.runner = &runner{spec: &s, plan: p, self: self, result: &Result{}, hold: h.hold}
	caller := ctx
	ctx, h.stop = context.WithCancel(ctx)
	if err := h.runner.prepare(ctx); err != nil {
		h.ending <- &launch.Ending{}
		h.Close()
		return nil, err
	}
	go func() { h.ending <- launch.Run(ctx, h.runner.box) }()
	select {
	case <-h.hold.Ready():
		return h, nil
	case <-h.hold.Over():
	}
	end := <-h.ending
	h.ending <- end
	h.Close()
	if err := caller.Err(); err != nil { // ctx is over by Close
		return nil, err
	}
	why := refusal.Newf("%s", cmp.Or(end.Error, "the sandbox has ended before it was ready"))
	why.Hints = end.Hints
	return nil, why
}

// MayPrepare says why Prepare would always be refused, nil for no reason that can
// be seen without an attempt.
func MayPrepare(s Spec, lang string) error {
	forLang(&s, lang)
	if err := mayWait(&s, lang); err != nil {
		return err
	}
	a, err := PlanFor(s, lang)
	if err != nil {
		return err
	}
	defer a.Close()
	if lang == "" && !a.plan.Filter.MayWait() {
		return refusal.Newf("a sandbox whose filter refuses futex cannot wait for its program: %s", refusal.Word(a.plan.Filter.Name))
	}
	return nil
}

// PlanFor is the plan of what Prepare makes, for which a sandbox of that kind is the
// right one as long as it fits any run at all.
func PlanFor(s Spec, lang string) (*Planned, error) {
	forLang(&s, lang)
	return Plan(s)
}

// forLang has the Spec run what stands for any program, or for any code of a
// language.
func forLang(s *Spec, lang string) {
	s.Program = policy.Program{Command: []string{"true"}}
	if lang != "" {
		s.Program = policy.Program{Code: []byte("\n"), Lang: lang}
	}
	s.Files, s.Spec.Stdin, s.Out, s.Keep, s.Force = nil, false, "", false, false
}

// mayWait refuses what is bound to one run from its start.
func mayWait(s *Spec, lang string) error {
	switch {
	case lang != "" && !runtimes.Waits(lang):
		return refusal.Newf("a sandbox cannot wait for code of the language %s", refusal.Word(lang))
	case s.TTY:
		return refusal.Newf("a sandbox with a terminal cannot wait for its program")
	case len(s.Hosts) > 0:
		return refusal.Newf("a sandbox with a list of hosts cannot wait for its program")
	case s.ExplainDenials || s.Observe != nil:
		return refusal.Newf("a sandbox whose denials are told cannot wait for its program")
	}
	return nil
}

// Over is closed when nothing of the sandbox is left.
func (h *Held) Over() <-chan struct{} { return h.hold.Over() }

// Lost says of one that was not used and is over why it ended by itself: what its
// interpreter did while it waited. It is nil where nothing of the sandbox's own is
// known to have ended it.
func (h *Held) Lost() error { return h.hold.Lost() }

// Close ends a sandbox that was not used. Of one that was, it waits until the kernel
// has taken it apart, and removes what it had of the host's. The error says what is
// left behind.
func (h *Held) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	h.stop()
	if h.end == nil {
		h.end = <-h.ending
		if h.end.OutDir != nil {
			h.end.OutDir.Close()
		}
		if h.end.Owned != nil {
			h.end.Owned.Close()
		}
	}
	var err error
	if left := h.end.Wait(); left != nil {
		err = left
	}
	h.runner.lost, h.runner.end = nil, h.end // the first is in the result
	h.runner.release()
	h.plan.Close()
	if err == nil && h.runner.lost != nil {
		err = h.runner.lost
	}
	return err
}

// awaited has the root made for what comes later, and keeps what of the host it is
// made of.
func (r *runner) awaited() (err error) {
	if r.hold != nil {
		r.plan.Input.Waits = r.hold.Waits()
		r.host, err = r.plan.Input.Look()
	}
	return err
}

// Planned is a Spec with all that a run of it would do.
type Planned struct {
	spec  Spec
	frame string // of spec, for each sandbox that it is compared with
	plan  *plan.Plan
}

// Plan decides what a run of s would do. Close it.
func Plan(s Spec) (*Planned, error) {
	p, err := plan.Build(s.Spec)
	if err != nil {
		return nil, err
	}
	return &Planned{spec: s, frame: s.Frame(), plan: p}, nil
}

// Close lets go of the files that the plan has opened.
func (a *Planned) Close() { a.plan.Close() }

// Run is the package's Run of what was planned, in a new sandbox. It may be called
// once.
func (a *Planned) Run(ctx context.Context) (Result, error) {
	s := a.spec // which gets the capture of its streams
	r := newResult(&s)
	err := run(ctx, &s, &r, a.plan)
	conclude(&r, err)
	return r, err
}

// Fits says whether a run in this sandbox would be the one that was planned: the
// whole policy is the same, and everything that the sandbox is made of but for what
// Fresh says. What differs is given to it when it is released. It asks nobody.
func (h *Held) Fits(a *Planned) bool {
	return h.takes(a) && h.madeAs(a.plan)
}

// Fresh says whether the host's part of what the sandbox is made of is as it was. It
// asks the host's file systems, one of which may never answer (a server that is gone):
// no lock may be held that others need.
func (h *Held) Fresh() bool { return h.runner.host.Same() }

// Outdated says of one that does not fit what was planned, which has nothing of its own
// that could be the reason, that it may fit nothing any more: PlanFor says whether.
func (h *Held) Outdated(a *Planned) bool {
	if !h.takes(a) || h.madeAs(a.plan) {
		return false
	}
	own := &a.spec
	return h.lang == "" || len(own.Program.Args) == 0 && slices.Equal(own.Env, h.runner.spec.Env)
}

// takes says whether a run is of the same policy, and of a form that the sandbox can be
// given.
func (h *Held) takes(a *Planned) bool {
	p := a.plan
	if mayWait(&a.spec, "") != nil || h.frame != a.frame {
		return false
	}
	code := p.Input.Code
	if h.lang == "" {
		return code == nil || code.Size <= rootfs.LaterSize/2
	}
	return code != nil && code.Size <= rootfs.LaterSize/2 && code.File == nil && !code.Exec && len(p.Input.Files) == 0 &&
		code.Name == h.plan.Input.Code.Name && runtimes.Streams(h.lang, code.Content)
}

// madeAs says whether what was planned would be made alike; of an interpreter that
// waits, also whether it would have been started alike.
func (h *Held) madeAs(p *plan.Plan) bool {
	mine := h.plan
	if !mine.Input.Extends(&p.Input) ||
		!bytes.Equal(mine.Filter.BPF, p.Filter.BPF) || !slices.Equal(mine.Rlimits, p.Rlimits) || !slices.Equal(mine.Cgroup.IO, p.Cgroup.IO) {
		return false
	}
	a1, a2 := &mine.Program, &p.Program
	return h.lang == "" || mine.Input.Same(&p.Input) &&
		slices.Equal(a1.Argv, a2.Argv) && slices.Equal(a1.Env, a2.Env) && slices.Equal(a1.Paths, a2.Paths) && a1.Dir == a2.Dir
}

// Run is the package's Run in a sandbox that waits and is Fresh, for what Fits it. When began
// is false nothing of the program has reached anything of the sandbox but init, and it
// can be run elsewhere: the sandbox is gone, or, with an error, which is the run's own (it
// was cancelled before it began, say), waits on as before. When Run returns no process of the program is left,
// and the result is all that there is to it; the sandbox itself is gone after
// Close.
func (h *Held) Run(ctx context.Context, a *Planned) (res Result, began bool, err error) {
	spec := a.spec // the plan's own stays as it is, for another sandbox
	r, s := h.runner, &spec
	c := &capture{}
	c.open(s)
	rel, err := h.release(a.plan, s)
	if err != nil {
		return Result{}, false, err
	}
	if err := context.Cause(ctx); err != nil {
		rel.Box.Close()
		return Result{}, false, err
	}
	rel.Done = ctx.Done()
	ok := h.hold.Release(rel)
	rel.Box.Close()
	if !ok {
		h.Close()
		return Result{}, false, nil
	}
	res = newResult(s) // while the program runs
	res.Warm = true
	h.end = <-h.ending
	r.spec, r.plan, r.result = s, a.plan, &res
	err = r.ended(ctx, h.end)
	if err == nil && r.lost != nil {
		err = r.lost
	}
	if !h.end.Pending() {
		if left := h.Close(); err == nil {
			err = left
		}
	}
	c.fill(&res)
	conclude(&res, err)
	return res, true, err
}

// release is what the sandbox gets for the run.
func (h *Held) release(p *plan.Plan, s *Spec) (*launch.Release, error) {
	b := &launch.Box{
		Identity: h.runner.box.Identity, Timeout: s.Limits.Timeout, CPUTime: s.Limits.CPUTime,
		Stdout: s.Stdout, Stderr: s.Stderr, OutputLimit: s.Limits.Output, OutputKill: s.OutputLimit == policy.OutputKill,
	}
	if s.Spec.Stdin {
		b.Stdin = s.Stdin
	}
	rel := &launch.Release{Box: b}
	if h.lang != "" {
		rel.Text = p.Input.Code.Content
		return rel, nil
	}
	code, files := rootfs.Later(&h.plan.Input, &p.Input)
	rel.Code = len(code)
	if err := b.Realize(append(code, files...)); err != nil {
		b.Close()
		return nil, err
	}
	b.Config.Paths, b.Config.Argv, b.Config.Env = p.Program.Paths, p.Program.Argv, p.Program.Env
	return rel, nil
}
