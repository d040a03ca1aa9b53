package pool

import (
	"errors"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// A sandbox that could not be made, or ended by itself while it waited, is tried again
// after a pause that doubles: what an image has for an interpreter may end at once, or
// use all the CPU time it gets, and would else keep the host busy for ever. One that
// has waited for the last pause, or was given out, was a good one.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// ripe is how long an interpreter must have run before it is told as ready. Those that
// cannot work end in a moment.
const ripe = 100 * time.Millisecond

// kind is how the making of one kind goes.
type kind struct {
	policy.Warm
	fails int // in a row
	retry time.Time
	told  bool

	doubt  bool // whether those that wait fit any run
	looked time.Time
}

// spare is how much longer than its age a sandbox may wait by its own clock, for
// the one that is taken in its last moment.
const spare = time.Minute

// fill keeps the pool as it should be, until it is closed.
func (p *Pool) fill() {
	defer close(p.done)
	defer p.clear()
	for p.ctx.Err() == nil {
		if d := p.settling(); d > 0 {
			p.sleep(d)
			continue
		}
		next := min(p.renew(), p.refresh())
		lang, lacks, later := p.lacking()
		if lacks {
			if err := p.add(lang); err != nil {
				p.failed(lang, err)
			}
			continue
		}
		p.sleep(min(next, later))
	}
}

// settleTime is left to a run that was just given a sandbox: most are over by
// then, and its release must not share the CPUs with the making of the next one.
const settleTime = 20 * time.Millisecond

// settling is how much of that is left.
func (p *Pool) settling() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return settleTime - time.Since(p.taken)
}

// sleep waits until there may be something to do.
func (p *Pool) sleep(d time.Duration) {
	t := time.NewTimer(max(d, time.Millisecond))
	defer t.Stop()
	select {
	case <-p.ctx.Done():
	case <-p.wake:
	case <-t.C:
	}
}

// add makes one more.
func (p *Pool) add(lang string) error {
	h, err := sandbox.Prepare(p.ctx, p.c.Spec, lang, p.c.MaxAge+spare)
	if err != nil {
		return err
	}
	m := &member{Held: h, lang: lang, born: time.Now()}
	p.mu.Lock()
	p.members = append(p.members, m)
	p.mu.Unlock()
	go func() {
		// One that ends while it waits is never given out.
		<-h.Over()
		if p.drop(func(x *member) bool { return x == m }) > 0 {
			p.lost(m)
		}
		p.poke()
	}()
	return nil
}

// lost notes that one has ended which nobody had taken or dropped.
func (p *Pool) lost(m *member) {
	why := m.Lost()
	if why == nil {
		why = errors.New("they end while they wait")
	}
	if m.lang != "" {
		why = refusal.Newf("%v", why).Hint("sandglass run --lang %s -c 1   # with the session's flags: what the interpreter says", m.lang)
	}
	if time.Since(m.born) >= lastPause {
		p.served(m.lang)
	}
	p.failed(m.lang, why)
}

// served notes that one of a kind was of use.
func (p *Pool) served(lang string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds[lang].fails = 0
}

// failed notes that one of a kind was not. Once may have been anybody's fault, such
// as the host's want of memory; of the second in a row somebody is told.
func (p *Pool) failed(lang string, why error) {
	p.mu.Lock()
	k := p.kinds[lang]
	k.retry = time.Now().Add(min(firstPause<<min(k.fails, 16), lastPause))
	k.fails++
	tell := k.fails == 2 && !k.told && p.c.Failing != nil && p.ctx.Err() == nil
	k.told = k.told || tell
	p.mu.Unlock()
	if tell {
		go p.c.Failing(k.Warm, why) // who reads it may take his time
	}
}

// drop closes those that are still there and meet a condition, and says how many.
func (p *Pool) drop(which func(*member) bool) int {
	p.mu.Lock()
	var gone, rest []*member
	for _, m := range p.members {
		if which(m) {
			gone = append(gone, m)
		} else {
			rest = append(rest, m)
		}
	}
	p.members = rest
	p.closing.Add(len(gone)) // before clear, and Close, can look
	p.mu.Unlock()
	for _, m := range gone {
		p.note(m.Close())
		p.closing.Done()
	}
	return len(gone)
}

// lookAgain is how often at most a kind is planned to see whether its sandboxes are
// still what would be made: a run that could have none may be the only one of its sort.
const lookAgain = 10 * time.Second

// renew lets go of those that fit no run any more, after a run that should have had one
// of them, and says when to look again.
func (p *Pool) renew() time.Duration {
	later := lastPause
	for _, s := range p.c.Sizes {
		due, wait := p.due(s.Lang)
		if !due {
			later = min(later, wait)
			continue
		}
		a, err := p.planFor(p.c.Spec, s.Lang)
		if err != nil {
			// A want of descriptors, say, or an interpreter that is just being upgraded:
			// nothing else could be made now, and a run that is refused takes none.
			p.doubtful(s.Lang)
			later = min(later, lookAgain)
			continue
		}
		p.drop(func(m *member) bool { return m.lang == s.Lang && !m.Fits(a) })
		a.Close()
	}
	return later
}

// due says whether a kind is to be planned now, which is noted, and else when to ask
// again.
func (p *Pool) due(lang string) (bool, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[lang]
	if !k.doubt || p.busy() {
		return false, lastPause // and poked
	}
	if wait := lookAgain - time.Since(k.looked); wait > 0 {
		return false, wait
	}
	k.doubt, k.looked = false, time.Now()
	return true, 0
}

func (p *Pool) doubtful(lang string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds[lang].doubt = true
}

// busy says whether there are runs that whatever is for later would take CPUs from.
func (p *Pool) busy() bool { return p.setups > 0 || p.waiting > 0 }

// refresh lets go of one that is too old or stale, and says when the next one is.
func (p *Pool) refresh() time.Duration {
	p.drop(func(m *member) bool { return m.stale || time.Since(m.born) >= p.c.MaxAge })
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.c.MaxAge
	for _, m := range p.members {
		next = min(next, p.c.MaxAge-time.Since(m.born))
	}
	return next
}

// lacking is the kind of which the greatest part is missing and one may be made now,
// and else when to ask again.
func (p *Pool) lacking() (lang string, lacks bool, later time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	later = lastPause
	if p.busy() {
		return "", false, later // and poked
	}
	full, least := true, 1.0
	for _, s := range p.c.Sizes {
		have := 0
		for _, m := range p.members {
			if m.lang != s.Lang {
				continue
			}
			have++
			if d := ripe - time.Since(m.born); d > 0 && s.Lang != "" {
				full, later = false, min(later, d)
			}
		}
		part := float64(have) / float64(s.N)
		full = full && part >= 1
		if wait := time.Until(p.kinds[s.Lang].retry); part < 1 && wait > 0 {
			later = min(later, wait)
		} else if part < least {
			lang, lacks, least = s.Lang, true, part
		}
	}
	if full {
		p.fullOnce.Do(func() { close(p.full) })
	}
	return lang, lacks, later
}

// clear ends all that wait.
func (p *Pool) clear() {
	p.drop(func(*member) bool { return true })
}
