package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/defaults"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

func TestMain(m *testing.M) { defaults.Main(m) }

// full is a pool with all its sandboxes there.
func full(t *testing.T, n int64) *Pool {
	t.Helper()
	c := Config{Spec: sandbox.Default(), Sizes: []policy.Warm{{N: n}}, MaxAge: time.Hour}
	c.Spec.Limits.Memory = 32 << 20
	p, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	<-p.Full()
	p.setup(1) // from here on nothing takes the place of another
	return p
}

// TestNewThatCannot: where no sandbox can be made New says why, and what to do; Full
// would never come.
func TestNewThatCannot(t *testing.T) {
	c := Config{Spec: sandbox.Default(), Sizes: []policy.Warm{{N: 1}}, MaxAge: time.Hour}
	c.Spec.InitPath = "/bin/true" // as a program's own that does not call Init
	var refused *sandbox.Error
	if _, err := New(t.Context(), c); !errors.As(err, &refused) || !strings.Contains(refused.What, "init") {
		t.Errorf("%v", err)
	}
	c.Spec.InitPath, c.Spec.CgroupParent = "", "/no/such"
	if _, err := New(t.Context(), c); !errors.As(err, &refused) || len(refused.Hints) == 0 {
		t.Errorf("%v", err)
	}
}

// TestCloseWaits: what somebody else takes apart is gone when Close returns, as one is
// that ended while it waited; and Close may be called twice.
func TestCloseWaits(t *testing.T) {
	p := full(t, 3)
	groups := testkit.CgroupsOf(os.Getpid())
	go p.drop(func(*member) bool { return true })
	testkit.Eventually(t, "they are taken", func() bool { return len(p.now()) == 0 })
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, path := range groups {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

func (p *Pool) now() []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.members)
}

// late is a context that ends when it is looked at for the nth time: between a
// sandbox's being taken and its being given anything, say.
type late struct {
	context.Context
	end  context.CancelFunc
	left int
}

func (l *late) Err() error {
	if l.left--; l.left == 0 {
		l.end()
	}
	return l.Context.Err()
}

// TestCanceledRunTakesNothing: a run that is cancelled before it has begun, whenever
// that is, leaves what waits for the others.
func TestCanceledRunTakesNothing(t *testing.T) {
	p := full(t, 3)
	was := p.now()
	spec := p.c.Spec
	spec.Program.Command = []string{"true"}
	for looks := 1; looks <= 2; looks++ {
		ctx, end := context.WithCancel(t.Context())
		res, err := p.Run(&late{ctx, end, looks}, spec)
		if res.Warm || res.Outcome != "canceled" {
			t.Errorf("%d: %+v, %v", looks, res, err)
		}
		if !slices.Equal(p.now(), was) {
			t.Fatalf("%d: %d of 3 are left of those that waited", looks, len(p.now()))
		}
	}
	if res, err := p.Run(t.Context(), spec); err != nil || !res.Warm || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestGiveBack: one that was taken and not used waits on in its turn, but only where
// it is still wanted.
func TestGiveBack(t *testing.T) {
	p := full(t, 2)
	spec := p.c.Spec
	spec.Program.Command = []string{"true"}
	a, err := sandbox.Plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	was := p.now()
	m := p.take(t.Context(), a)
	p.giveBack(m)
	if m != was[0] || !slices.Equal(p.now(), was) {
		t.Errorf("%v is %v", was, p.now())
	}
	m = p.take(t.Context(), a)
	m.Close()
	p.giveBack(m) // it is gone
	if !slices.Equal(p.now(), was[1:]) {
		t.Errorf("%v is %v", was[1:], p.now())
	}
}

// TestFailingKind: each failure doubles the pause, up to a minute; the second in a row
// is told, once; and it holds up no other kind.
func TestFailingKind(t *testing.T) {
	told := make(chan string, 9)
	p := &Pool{ctx: t.Context(), full: make(chan struct{}), kinds: map[string]*kind{}, c: Config{
		Sizes:   []policy.Warm{{Lang: "python", N: 4}, {N: 2}},
		Failing: func(w policy.Warm, why error) { told <- fmt.Sprint(w.Kind(), w.N, why) },
	}}
	for _, s := range p.c.Sizes {
		p.kinds[s.Lang] = &kind{Warm: s}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1, 2} {
		if i == 8 {
			p.served("python")
		}
		before := time.Now()
		p.failed("python", errors.New("why"))
		// It begins some time between the two looks at the clock.
		if begun := p.kinds["python"].retry.Add(-want * time.Second); begun.Before(before) || begun.After(time.Now()) {
			t.Errorf("failure %d: the pause is %v more than %ds", i, begun.Sub(before), want)
		}
	}
	if got := <-told; got != "python4 why" || len(told) > 0 {
		t.Errorf("told %q and %d more", got, len(told))
	}
	if lang, lacks, _ := p.lacking(); lang != "" || !lacks {
		t.Errorf("%q %v is made next", lang, lacks)
	}
}

// TestReadyIsRipe: an interpreter that has just begun is not told as ready yet.
func TestReadyIsRipe(t *testing.T) {
	p := &Pool{ctx: t.Context(), full: make(chan struct{}), kinds: map[string]*kind{"node": {}}, c: Config{Sizes: []policy.Warm{{Lang: "node", N: 1}}}}
	p.members = []*member{{lang: "node", born: time.Now().Add(time.Hour)}}
	if _, lacks, later := p.lacking(); lacks || later <= ripe {
		t.Errorf("%v, to be asked in %v", lacks, later)
	}
	select {
	case <-p.full:
		t.Error("it is ready")
	default:
	}
	p.members[0].born = time.Now().Add(-ripe)
	p.lacking()
	<-p.full
}
