package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// contender is one way to run a program.
type contender struct {
	name    string
	missing string // why it cannot run here
	env     []string
	fd3     string // a file that is its descriptor 3
	run     func() (sample, error)
	ready   func() error         // waits, outside the clock, until it can be asked
	total   func() time.Duration // CPU time of a process that serves all runs, so far
	stop    func()               // when it is not needed any more
	// elsewhere says that the CPU time is spent by processes that are not its
	// children, such as the host's init.
	elsewhere bool

	samples []sample
	used    time.Duration // of total, in the rounds that count
	failed  int
}

// starting drops the contenders that do not start on this host, and says why.
func starting(all []*contender) []*contender {
	var ok []*contender
	for _, c := range all {
		if c.missing == "" {
			if err := c.settle(); err != nil {
				c.missing = err.Error()
			} else if _, err := c.run(); err != nil {
				c.missing = err.Error()
			}
		}
		if c.missing != "" {
			fmt.Printf("left out: %s: %s\n", c.name, c.missing)
			continue
		}
		ok = append(ok, c)
	}
	return ok
}

func (c *contender) settle() error {
	if c.ready == nil {
		return nil
	}
	return c.ready()
}

// tries is how often a run may fail before the whole comparison does: runc does
// so on a busy machine now and then.
const tries = 5

// try is one run that counts. Failed ones are told in the table.
func (c *contender) try() (s sample, err error) {
	for range tries {
		if s, err = c.run(); err == nil {
			return s, nil
		}
		c.failed++
		if err := c.settle(); err != nil {
			return s, err
		}
	}
	return s, err
}

// rounds says how the contenders are measured.
type rounds struct {
	n, warmup int
	burst     int // runs of one contender before the next one's turn
	pause     time.Duration
}

// stopAll lets go of what the contenders hold.
func stopAll(list []*contender) {
	for _, c := range list {
		if c.stop != nil {
			c.stop()
		}
	}
}

// measure runs the rounds. Each has an order of its own, the same in every
// measurement, so that no contender always runs behind the same other one. One that
// fails too often is left out from then on, and is not in the answer.
func measure(runners []*contender, r rounds) (done []*contender, err error) {
	for _, c := range runners {
		c.samples, c.used, c.failed = nil, 0, 0
	}
	order := rand.New(rand.NewPCG(1, 1))
	for round := range r.warmup + r.n {
		for _, i := range order.Perm(len(runners)) {
			c := runners[i]
			if c.missing != "" {
				continue
			}
			if err := c.turn(r, round >= r.warmup); err != nil {
				c.missing = fmt.Sprintf("round %d: %v", round, err)
				fmt.Printf("left out: %s: %s\n", c.name, c.missing)
			}
		}
	}
	for _, c := range runners {
		if c.missing == "" {
			done = append(done, c)
		}
	}
	if len(done) == 0 {
		return nil, errors.New("every contender failed")
	}
	return done, nil
}

// turn is a contender's burst in one round. Behind it, it waits until what it does
// after its runs is done: that is no cost of the next contender's.
func (c *contender) turn(r rounds, counts bool) error {
	var before time.Duration
	if c.total != nil {
		before = c.total()
	}
	for range r.burst {
		time.Sleep(r.pause)
		s, err := c.try()
		if err != nil {
			return err
		}
		if counts {
			c.samples = append(c.samples, s)
		}
	}
	if err := c.settle(); err != nil {
		return err
	}
	if c.total != nil && counts {
		c.used += c.total() - before
	}
	return nil
}

// between names the pause of a table's runs.
func between(pause time.Duration) string {
	if pause == 0 {
		return "one after the other"
	}
	return fmt.Sprintf("pauses of %v", pause)
}
