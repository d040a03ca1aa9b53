package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sample is one run: from before the clone of the command to after the wait for it.
type sample struct{ wall, cpu time.Duration }

func quantile(d []time.Duration, q float64) time.Duration {
	s := slices.Clone(d)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1)+0.5)]
}

func (c *contender) walls() []time.Duration {
	d := make([]time.Duration, len(c.samples))
	for i, s := range c.samples {
		d[i] = s.wall
	}
	return d
}

func (c *contender) cpus() []time.Duration {
	d := make([]time.Duration, len(c.samples))
	for i, s := range c.samples {
		d[i] = s.cpu
	}
	return d
}

// ratio is the median over the rounds of a's time by b's in the same round.
func ratio(a, b *contender) float64 {
	r := make([]float64, len(a.samples))
	for i := range r {
		r[i] = float64(a.samples[i].wall) / float64(b.samples[i].wall)
	}
	slices.Sort(r)
	return r[len(r)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }

// report writes the table, and below it each contender's time by each other's.
func report(list []*contender) {
	fmt.Printf("\n| %-24s | median ms | p95 ms | min ms | CPU ms |\n|%s|---:|---:|---:|---:|\n", fmt.Sprintf("n=%d", len(list[0].samples)), strings.Repeat("-", 26))
	for _, c := range list {
		w := c.walls()
		fmt.Printf("| %-24s | %9s | %6s | %6s | %6s |\n", c.name,
			ms(quantile(w, 0.5)), ms(quantile(w, 0.95)), ms(quantile(w, 0)), ms(quantile(c.cpus(), 0.5)))
	}
	for _, c := range list {
		if c.failed > 0 {
			fmt.Printf("\n%s failed %d times, and was run again\n", c.name, c.failed)
		}
	}
	fmt.Printf("\nmedian of the ratios of one round, row by column:\n\n| %-24s |", "")
	for _, c := range list {
		fmt.Printf(" %s |", c.name)
	}
	fmt.Printf("\n|%s|%s\n", strings.Repeat("-", 26), strings.Repeat("---:|", len(list)))
	for _, a := range list {
		fmt.Printf("| %-24s |", a.name)
		for _, b := range list {
			fmt.Printf(" %*.2f |", len(b.name), ratio(a, b))
		}
		fmt.Println()
	}
}
