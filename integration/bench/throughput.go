package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// loads are how many sandboxes are asked for at once.
var loads = []int{1, 2, 4, 8, 64}

// turns is how many turns each way has at each load: what else the machine does
// meets all of them.
const turns = 2

// flow is one way to have many sandboxes: for d, n at once.
type flow struct {
	name    string
	missing string
	run     func(n int, d time.Duration) (rate, error)
}

// rate is what one way did at one load.
type rate struct {
	count int
	wall  time.Duration
	busy  time.Duration // of all CPUs, by whomever
}

// measureThroughput counts sandboxes of /bin/true, at each load, in turn.
func measureThroughput(o *options, dir string) error {
	flows := []flow{
		starts(command("sandglass run", o.sandglass, slices.Concat([]string{"run"}, degraded(), []string{"--", program})...)),
		{name: "session", run: func(n int, d time.Duration) (rate, error) { return sessionFlow(o, n, d) }},
		starts(command("bwrap", "bwrap", bwrapArgs("--", program)...)),
		starts(filtered(dir)),
	}
	for _, f := range flows {
		if f.missing != "" {
			fmt.Printf("left out: %s: %s\n", f.name, f.missing)
		}
	}
	flows = slices.DeleteFunc(flows, func(f flow) bool { return f.missing != "" })
	var rows [][]string
	for _, n := range loads {
		if n > o.parallel {
			continue
		}
		rates := make([]rate, len(flows))
		for range turns {
			for i, f := range flows {
				r, err := f.run(n, o.slice)
				if err != nil {
					return fmt.Errorf("%s, %d at once: %w", f.name, n, err)
				}
				rates[i].add(r)
			}
		}
		rows = append(rows, rateRows(flows, rates, n)...)
	}
	table([]string{fmt.Sprintf("%s, %d × %v each", program, turns, o.slice), "at once", "a second", "by bwrap", "CPUs busy", "CPU ms each"}, rows)
	return nil
}

// rateRows are the rows of one load.
func rateRows(flows []flow, rates []rate, n int) (rows [][]string) {
	by := slices.IndexFunc(flows, func(f flow) bool { return f.name == "bwrap" })
	for i, r := range rates {
		ratio := "–"
		if by >= 0 {
			ratio = fmt.Sprintf("%.2f", r.each()/rates[by].each())
		}
		rows = append(rows, []string{flows[i].name, strconv.Itoa(n), fmt.Sprintf("%.0f", r.each()), ratio,
			fmt.Sprintf("%.0f %%", 100*r.busy.Seconds()/r.wall.Seconds()/float64(runtime.NumCPU())), ms(r.busy / time.Duration(max(r.count, 1)))})
	}
	return rows
}

func (r *rate) add(x rate) {
	r.count += x.count
	r.wall += x.wall
	r.busy += x.busy
}

// each is how many there were in a second.
func (r rate) each() float64 { return float64(r.count) / r.wall.Seconds() }

// timed is the rate of what counts its sandboxes.
func timed(run func() (int, error)) (rate, error) {
	began, before := time.Now(), busyTime()
	n, err := run()
	return rate{n, time.Since(began), busyTime() - before}, err
}

// starts has a command started again and again.
func starts(c *contender) flow {
	return flow{name: c.name, missing: c.missing, run: func(n int, d time.Duration) (rate, error) { return workers(c.run, n, d) }}
}

// workers are n callers, each of which waits for its run before its next.
func workers(run func() (sample, error), n int, d time.Duration) (rate, error) {
	return timed(func() (int, error) {
		var count atomic.Int64
		var first error
		var once sync.Once
		var all sync.WaitGroup
		end := time.Now().Add(d)
		for range n {
			all.Go(func() {
				for time.Now().Before(end) {
					if _, err := run(); err != nil {
						once.Do(func() { first = err })
						return
					}
					count.Add(1)
				}
			})
		}
		all.Wait()
		return int(count.Load()), first
	})
}

// sessionFlow keeps n requests with a session that may run as many.
func sessionFlow(o *options, n int, d time.Duration) (rate, error) {
	s, err := openSession(o, "--max-running", strconv.Itoa(n))
	if err != nil {
		return rate{}, err
	}
	defer s.end()
	return timed(func() (int, error) {
		const fields = `"command":["/bin/true"]`
		end := time.Now().Add(d)
		for range n {
			if err := s.send(fields); err != nil {
				return 0, err
			}
		}
		count := 0
		for count < s.n {
			if err := s.reply(false); err != nil {
				return count, err
			}
			count++
			if time.Now().Before(end) {
				if err := s.send(fields); err != nil {
					return count, err
				}
			}
		}
		return count, nil
	})
}

// busyTime is the time that all CPUs together have not been idle.
func busyTime() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	return parseBusy(first)
}

// parseBusy reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq, steal; what follows is in user already.
func parseBusy(line string) time.Duration {
	var ticks int64
	for i, f := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
