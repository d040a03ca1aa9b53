package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// soak is the load and what has come of it so far.
type soak struct {
	o        *options
	dir      string
	port     int
	service  *service
	arrived  atomic.Int64 // connections from sandboxes: each is an escape
	limited  bool         // cgroups hold the limits
	degraded []string     // what the host cannot give to this user
	enforced map[string]result.Enforcer
	deck     []card
	began    time.Time

	mu    sync.Mutex
	count map[*program]*tally
	runs  map[string]int // by the way in
	wrong int
	fails int // runs that sandglass itself failed
	left  []string
	looks int
	first *figures // after the first leg
	last  *figures

	fleet *fleet // of sessions, nil without
	warm  int    // runs in sandboxes that waited for them
}

// card is one program in one way.
type card struct {
	p   *program
	via string
}

type tally struct {
	runs, wrong  int
	total, worst time.Duration
}

// load is the caller under test.
func load(o *options) (int, error) {
	s := &soak{o: o, dir: "/tmp/soak", count: map[*program]*tally{}, runs: map[string]int{}, began: time.Now()}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return 0, err
	}
	if err := s.listen(); err != nil {
		return 0, err
	}
	var err error
	if s.service, err = startService(s.dir); err != nil {
		return 0, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w, err := newWitness(s)
	if err != nil {
		return 0, err
	}
	if err := s.probe(); err != nil {
		return 0, err
	}
	if o.sessions {
		if s.fleet, err = s.launch(); err != nil {
			return 0, err
		}
	}
	s.deal()
	s.head()
	peak := watch()
	if s.fleet != nil {
		s.fleet.begin()
	}
	w.settle()
	for n := 0; s.more(ctx, n); {
		n = s.leg(ctx, w, n)
		w.look()
		s.last = measure()
		if s.first == nil {
			s.first = s.last
		}
	}
	if s.fleet != nil {
		s.fleet.close(w)
	}
	return s.report(peak()), nil
}

// more says whether there is a leg to come. Without the first nothing is known.
func (s *soak) more(ctx context.Context, n int) bool {
	if s.o.runs > 0 {
		return n < s.o.runs && ctx.Err() == nil
	}
	return n == 0 || ctx.Err() == nil && time.Since(s.began).Minutes() < s.o.minutes
}

// listen waits where sandboxes must not get: a port and an abstract socket of
// their caller's.
func (s *soak) listen() error {
	t, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	u, err := net.Listen("unix", "@sandglass-soak")
	if err != nil {
		return err
	}
	s.port = t.Addr().(*net.TCPAddr).Port
	for _, l := range []net.Listener{t, u} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				s.arrived.Add(1)
				c.Close()
			}
		}()
	}
	return nil
}

// probe learns what this host can enforce for this user: the verdicts must then
// be those of that host in every run.
func (s *soak) probe() error {
	try := func() (sandbox.Result, error) {
		spec := sandbox.Default()
		spec.Program = policy.Program{Command: []string{"true"}}
		spec.AllowDegraded, spec.InitPath = s.degraded, s.initPath()
		return sandbox.Run(context.Background(), spec)
	}
	res, err := try()
	var refused *sandbox.Error
	if errors.As(err, &refused) && os.Getuid() != 0 {
		s.degraded = []string{"memory", "cpu", "pids"}
		res, err = try()
	}
	if err != nil {
		return err
	}
	s.enforced = map[string]result.Enforcer{}
	for _, name := range []string{"memory", "cpus", "pids"} {
		s.enforced[name] = res.Limits[name].EnforcedBy
	}
	s.limited = s.enforced["memory"] == result.ByCgroup1 || s.enforced["memory"] == result.ByCgroup2
	return nil
}

// deal makes the deck: every program in every way that it has.
func (s *soak) deal() {
	for _, p := range s.table() {
		if !strings.Contains(p.name, s.o.only) {
			continue
		}
		s.count[p] = &tally{}
		for _, via := range s.ways() {
			if p.only == "" || p.only == via {
				s.deck = append(s.deck, card{p, via})
			}
		}
	}
}

// ways are how the programs of this load are run.
func (s *soak) ways() []string {
	if s.fleet != nil {
		return []string{"session"}
	}
	return []string{"cli", "api"}
}

// job is run n. The decks are shuffled by the seed, one after another, so that
// all programs come equally often and the same seed gives the same order.
func (s *soak) job(n int) *job {
	size := len(s.deck)
	order := rand.New(rand.NewPCG(s.o.seed, uint64(n/size))).Perm(size)
	at := s.deck[order[n%size]]
	return &job{program: at.p, n: n, via: at.via, rnd: rand.New(rand.NewPCG(s.o.seed, 1<<32+uint64(n)))}
}

// leg runs jobs from n on, some at once, and returns the next n.
func (s *soak) leg(ctx context.Context, w *witness, n int) int {
	at, runs := s.fleet.width(s.looks, s.o.at, s.o.leg)
	end := n + runs
	if s.o.runs > 0 {
		end = min(end, s.o.runs)
	}
	next := atomic.Int64{}
	next.Store(int64(n))
	var all sync.WaitGroup
	for client := range at {
		all.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= end {
					return
				}
				j := s.job(n)
				j.to = s.fleet.member(s.looks, client)
				s.one(w, j)
			}
		})
	}
	all.Wait()
	return min(end, int(next.Load()))
}

// one runs one job, looks for what is left of it, and counts.
func (s *soak) one(w *witness, j *job) {
	e, why := s.run(j)
	left := w.after(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.count[j.program]
	t.runs++
	t.total += e.took
	t.worst = max(t.worst, e.took)
	s.runs[j.via]++
	if e.res.Warm {
		s.warm++
	}
	if e.res.Outcome == result.Failed || !e.said && !e.killed() {
		s.fails++
	}
	if why != "" {
		t.wrong++
		s.wrong++
		s.tell("wrong verdict", e, why)
	}
	for _, x := range left {
		s.left = append(s.left, x)
		s.tell("left behind", e, x)
	}
}

// tell describes a run in a way that it can be repeated, the first times.
func (s *soak) tell(what string, e *ended, why string) {
	if s.wrong+len(s.left) > 30 {
		return
	}
	j := e.job
	network := ""
	if e.res.Network != nil {
		network = fmt.Sprintf("  network %.1000s\n", fmt.Sprintf("%+v", *e.res.Network))
	}
	fmt.Fprintf(os.Stderr, "soak: %s: run %d, %s, by %s: %s\n  args %q\n  stderr %.500q, %d ms, memory %d\n%s",
		what, j.n, j.name, j.via, why, s.args(j, filepath.Join(s.dir, "out")), e.stderr, e.res.WallMS, e.res.MemoryPeakBytes, network)
}
