// Package pool keeps single-use sandboxes ready for runs that are to come. Each
// serves one run and is gone: nothing is shared between two runs but the policy.
//
// A run gets one only if its whole policy is the one that they were made with
// and it would be made of the same (sandbox.Held.Fits, Fresh); any other is run as
// sandbox.Run does, and so is each while none is ready. Result.Warm says which.
//
// They are made one at a time, and not while a run is being set up or waits for
// its turn (Pool.Waiting), so that a run that is there never waits for one that
// may come. Where there are always more runs than places that means never: a
// sandbox made ahead costs as much as one made when it is asked for.
package pool

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// Config says what is kept ready.
type Config struct {
	// Spec has the policy; its program and streams do not count.
	Spec  sandbox.Spec
	Sizes []policy.Warm // how many sandboxes of each kind are kept
	// MaxAge is how old a sandbox that waits may become before another takes its
	// place: interpreters and files of the host change. Between 10 seconds and 24
	// hours; 0 is 10 minutes.
	MaxAge time.Duration
	// Failing, if there is one, is told once of each kind that cannot be kept ready,
	// and why: it is tried again, more and more seldom.
	Failing func(w policy.Warm, why error)
}

// Pool is the sandboxes that wait. Its methods may be called from many goroutines.
type Pool struct {
	c     Config
	frame string
	ctx   context.Context
	stop  context.CancelFunc
	wake  chan struct{} // has a token when the filler may have something to do
	done  chan struct{} // closed when the filler has ended

	fresh   func(*member) bool // tests have others of both
	planFor func(sandbox.Spec, string) (*sandbox.Planned, error)

	full     chan struct{} // closed when all were there at the same time
	fullOnce sync.Once

	behind  chan struct{}  // a token for each that is taken apart behind its result
	closing sync.WaitGroup // those that are dropped, until they are gone

	mu      sync.Mutex // guards what follows
	left    error      // what could not be removed
	members []*member
	setups  int // runs that are being set up
	waiting int // runs that wait for their turn
	taken   time.Time
	kinds   map[string]*kind // by their language
}

// member is one sandbox that waits.
type member struct {
	*sandbox.Held
	lang  string
	born  time.Time
	stale bool // the host's part of it is not as it was
}

// New makes one of each kind, and goes on with the others. Where one cannot be made
// it fails, with the hints of a run: a pool that never had a sandbox would say so to
// nobody. What fails later is tried again, and runs are made cold meanwhile.
func New(ctx context.Context, c Config) (*Pool, error) {
	if err := policy.CheckWarm(c.Sizes, &c.MaxAge); err != nil {
		return nil, err
	}
	for _, s := range c.Sizes {
		if err := sandbox.MayPrepare(c.Spec, s.Lang); err != nil {
			return nil, err
		}
	}
	has, err := hostRoom()
	if err != nil {
		return nil, err
	}
	if err := has.holds(c); err != nil {
		return nil, err
	}
	p := &Pool{c: c, frame: c.Spec.Frame(), wake: make(chan struct{}, 1), done: make(chan struct{}),
		fresh: func(m *member) bool { return m.Fresh() }, planFor: sandbox.PlanFor, full: make(chan struct{}), behind: make(chan struct{}, mostBehind)}
	p.kinds = map[string]*kind{}
	for _, s := range c.Sizes {
		p.kinds[s.Lang] = &kind{Warm: s}
	}
	p.ctx, p.stop = context.WithCancel(ctx)
	for _, s := range c.Sizes {
		if err := p.add(s.Lang); err != nil {
			p.stop()
			p.clear()
			p.closing.Wait()
			return nil, err
		}
	}
	go p.fill()
	return p, nil
}

// Full is closed once all sandboxes have been there at the same time.
func (p *Pool) Full() <-chan struct{} { return p.full }

// Waiting notes how many runs wait for their turn.
func (p *Pool) Waiting(n int) {
	p.mu.Lock()
	p.waiting = n
	p.mu.Unlock()
	p.poke()
}

// Run runs s: in a sandbox that waits, if one fits, else in a new one.
func (p *Pool) Run(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
	run := func() (sandbox.Result, error) { return sandbox.Run(ctx, s) }
	if a := p.plan(s); a != nil {
		defer a.Close()
		run = func() (sandbox.Result, error) { return a.Run(ctx) } // and does not plan it again
		for m := p.take(ctx, a); m != nil; m = p.take(ctx, a) {
			// Outside of the lock: a dead file system holds up those that are to use it, and
			// no other run, cancel or Close.
			if m.stale = !p.fresh(m); m.stale {
				p.giveBack(m)
				continue
			}
			res, began, err := m.Run(ctx, a)
			if began {
				p.served(m.lang)
				p.leave(m.Held)
				return res, err
			}
			if err != nil {
				// This run can have no sandbox, which the next one would say as well.
				p.giveBack(m)
				break
			}
			// Certainly not begun: it was gone before it could be given anything.
		}
	}
	p.setup(1)
	defer p.setup(-1)
	return run()
}

// plan is nil for a run that is refused, as sandbox.Run will say, and where there
// is nothing to plan for.
func (p *Pool) plan(s sandbox.Spec) *sandbox.Planned {
	p.mu.Lock()
	some := slices.ContainsFunc(p.members, func(m *member) bool { return m.lang == "" || len(s.Program.Code) > 0 })
	p.mu.Unlock()
	if !some || s.Frame() != p.frame {
		return nil
	}
	a, err := sandbox.Plan(s)
	if err != nil {
		return nil
	}
	return a
}

// take gives out the oldest one that fits by what is in memory, one of the program's
// language first. A run that nobody wants any more gets none.
func (p *Pool) take(ctx context.Context, a *sandbox.Planned) *member {
	if ctx.Err() != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, m := range p.members {
		if !m.stale && time.Since(m.born) < p.c.MaxAge && (best < 0 || p.members[best].lang == "" && m.lang != "") && m.Fits(a) {
			best = i
		}
	}
	if best < 0 || p.members[best].lang == "" {
		p.doubt(a)
	}
	if best < 0 {
		return nil
	}
	m := p.members[best]
	p.members = slices.Delete(p.members, best, best+1)
	p.taken = time.Now()
	p.poke()
	return m
}

// doubt notes the kinds of which this run should have had one.
func (p *Pool) doubt(a *sandbox.Planned) {
	for _, m := range p.members {
		if k := p.kinds[m.lang]; !k.doubt && !m.stale && m.Outdated(a) {
			k.doubt = true
			p.poke()
		}
	}
}

// giveBack has one wait on that was taken and not used, or, where it is stale, for the
// filler to close it: a run that found all of a kind so would be held up by that.
func (p *Pool) giveBack(m *member) {
	p.mu.Lock()
	have, over := 0, p.ctx.Err() != nil // and nobody clears any more
	for _, x := range p.members {
		if x.lang == m.lang {
			have++
		}
	}
	select {
	case <-m.Over():
		over = true
	default:
	}
	// Another may have taken its place already.
	over = over || !m.stale && !slices.ContainsFunc(p.c.Sizes, func(s policy.Warm) bool { return s.Lang == m.lang && int64(have) < s.N })
	if !over {
		p.members = append(p.members, m)
		slices.SortStableFunc(p.members, func(a, b *member) int { return a.born.Compare(b.born) })
		p.poke()
	}
	p.mu.Unlock()
	if over {
		p.note(m.Close())
	}
}

// setup counts a run that is being set up.
func (p *Pool) setup(n int) {
	p.mu.Lock()
	p.setups += n
	p.mu.Unlock()
	p.poke()
}

func (p *Pool) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// mostBehind is how many sandboxes may be taken apart behind their results. One
// more is before its own, so that quick runs cannot pile up what they leave.
const mostBehind = 8

// leave has what a run has left taken away, behind its result if there is room for
// that.
func (p *Pool) leave(h *sandbox.Held) {
	select {
	case p.behind <- struct{}{}:
		go func() {
			p.note(h.Close())
			<-p.behind
		}()
	default:
		p.note(h.Close())
	}
}

// note keeps the first thing that was left behind.
func (p *Pool) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = err
	}
}

// Close ends what waits, and returns when nothing of any sandbox is left that
// waited, or was given out and has ended. Runs that have begun go on. The error says
// what could not be removed.
func (p *Pool) Close() error {
	p.stop()
	<-p.done
	p.closing.Wait()
	for range mostBehind {
		p.behind <- struct{}{}
	}
	for range mostBehind {
		<-p.behind
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}
