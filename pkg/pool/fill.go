package pool

import (
	"time"

	"sandglass/pkg/sandbox"
)

// A sandbox that could not be made is tried again after a pause that doubles.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// spare is how much longer than its age a sandbox may wait by its own clock, for
// the one that is taken in its last moment.
const spare = time.Minute

// fill keeps the pool as it should be, until it is closed.
func (p *Pool) fill() {
	defer close(p.done)
	defer p.clear()
	pause, retry := firstPause, time.Time{}
	for p.ctx.Err() == nil {
		if d := p.settling(); d > 0 {
			p.sleep(d)
			continue
		}
		next := p.refresh()
		lang, lacks := p.lacking()
		if lacks && !time.Now().Before(retry) {
			if p.add(lang) {
				pause = firstPause
				continue
			}
			retry, pause = time.Now().Add(pause), min(2*pause, lastPause)
		}
		if lacks && retry.After(time.Now()) {
			next = min(next, time.Until(retry))
		}
		p.sleep(next)
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
func (p *Pool) add(lang string) bool {
	h, err := sandbox.Prepare(p.ctx, p.c.Spec, lang, p.c.MaxAge+spare)
	if err != nil {
		return false
	}
	m := &member{Held: h, lang: lang, born: time.Now()}
	p.mu.Lock()
	p.members = append(p.members, m)
	p.mu.Unlock()
	go func() {
		// One that ends while it waits is never given out.
		<-h.Over()
		p.drop(func(x *member) bool { return x == m })
		p.poke()
	}()
	return true
}

// drop closes those that are still there and meet a condition.
func (p *Pool) drop(which func(*member) bool) {
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
	p.mu.Unlock()
	for _, m := range gone {
		m.Close()
	}
}

// refresh lets go of one that is too old, and says when the next one is.
func (p *Pool) refresh() time.Duration {
	p.drop(func(m *member) bool { return time.Since(m.born) >= p.c.MaxAge })
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.c.MaxAge
	for _, m := range p.members {
		next = min(next, p.c.MaxAge-time.Since(m.born))
	}
	return next
}

// lacking is the kind of which the greatest part is missing, where one may be
// made now.
func (p *Pool) lacking() (lang string, lacks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.setups > 0 || p.waiting > 0 {
		return "", false
	}
	least := 1.0
	for _, s := range p.c.Sizes {
		have := 0
		for _, m := range p.members {
			if m.lang == s.Lang {
				have++
			}
		}
		if part := float64(have) / float64(s.N); part < least {
			lang, lacks, least = s.Lang, true, part
		}
	}
	if !lacks {
		p.fullOnce.Do(func() { close(p.full) })
	}
	return lang, lacks
}

// clear ends all that wait.
func (p *Pool) clear() {
	p.drop(func(*member) bool { return true })
}
