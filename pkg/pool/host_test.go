package pool

import (
	"slices"
	"sync"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// within has something done that may never end where it is wrong.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	testkit.Eventually(t, what, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// TestHostThatDoesNotAnswer: where the host's part of a sandbox is asked for and nobody
// answers, other runs go on, and so does Close; then the sandbox is gone, and its run
// has another.
func TestHostThatDoesNotAnswer(t *testing.T) {
	p := full(t, 2)
	was := p.now()
	asked, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { close(answer) }) })
	p.fresh = func(m *member) bool {
		if m == was[0] {
			close(asked)
			<-answer
			return false
		}
		return true
	}
	spec := p.c.Spec
	spec.Program.Command = []string{"true"}
	first := make(chan sandbox.Result, 1)
	go func() {
		res, _ := p.Run(t.Context(), spec)
		first <- res
	}()
	<-asked
	within(t, "another run and Close", func() {
		if res, err := p.Run(t.Context(), spec); err != nil || !res.Warm || res.ExitCode != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		p.Close()
	})
	once.Do(func() { close(answer) })
	if res := <-first; res.Warm || res.Outcome != "exited" || res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
	<-was[0].Over()
	if left := p.now(); len(left) > 0 {
		t.Errorf("%v wait", left)
	}
}

// TestStaleGivesWay: a sandbox of which the host's part is another by now serves no run,
// and is closed; the run has the next one that fits.
func TestStaleGivesWay(t *testing.T) {
	p := full(t, 3)
	was := p.now()
	p.fresh = func(m *member) bool { return m == was[2] }
	spec := p.c.Spec
	spec.Program.Command = []string{"true"}
	if res, err := p.Run(t.Context(), spec); err != nil || !res.Warm || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	testkit.Eventually(t, "they are gone", func() bool { return len(p.now()) == 0 })
	<-was[0].Over()
	<-was[1].Over()
}

// TestRenew: those of a kind that is in doubt are compared with its plan while no run is
// set up or waits, not too often, and closed if they do not fit it; where there is no
// plan they stay.
func TestRenew(t *testing.T) {
	of := full(t, 2)
	members := of.now()
	k := &kind{Warm: policy.Warm{N: 2}, doubt: true}
	calls := 0
	plan := func() (*sandbox.Planned, error) { return nil, unix.EMFILE }
	p := &Pool{ctx: t.Context(), c: of.c, kinds: map[string]*kind{"": k}, members: members, wake: make(chan struct{}, 1)}
	p.planFor = func(sandbox.Spec, string) (*sandbox.Planned, error) { calls++; return plan() }
	look := func(what string, wantCalls, wait int, doubt bool) {
		t.Helper()
		p.renew()
		if calls != wantCalls || k.doubt != doubt || !slices.Equal(p.now(), members[:wait]) {
			t.Errorf("%s: %d plans, doubt %t, %v wait", what, calls, k.doubt, p.now())
		}
	}
	p.setup(1)
	look("a run is set up", 0, 2, true)
	p.setup(-1)
	p.Waiting(1)
	look("a run waits", 0, 2, true)
	p.Waiting(0)
	look("no plan", 1, 2, true)
	look("at once again", 1, 2, true)
	k.looked = time.Now().Add(-lookAgain)
	plan = func() (*sandbox.Planned, error) { return sandbox.PlanFor(of.c.Spec, "") }
	look("they fit", 2, 2, false)
	look("no doubt", 2, 2, false)
	k.doubt, k.looked = true, time.Time{}
	other := of.c.Spec
	other.Limits.Memory *= 2
	plan = func() (*sandbox.Planned, error) { return sandbox.PlanFor(other, "") }
	look("they do not fit", 3, 0, false)
	for _, m := range members {
		<-m.Over()
	}
}
