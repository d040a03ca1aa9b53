package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// sample is one run: from before the clone of the command to after the wait for it.
type sample struct{ wall, cpu time.Duration }

// quantile is the nearest rank: the least value that a part q of all does not
// exceed. The 99th of a hundred is the second largest, and no mean of two.
func quantile[T float64 | time.Duration](values []T, q float64) T {
	s := slices.Clone(values)
	slices.Sort(s)
	// 0.99*100 is a little more than 99 in binary.
	rank := int(math.Ceil(q*float64(len(s)) - 1e-9))
	return s[min(max(rank, 1), len(s))-1]
}

func median[T float64 | time.Duration](values []T) T { return quantile(values, 0.5) }

func mean(d []time.Duration) time.Duration {
	var sum time.Duration
	for _, v := range d {
		sum += v
	}
	return sum / time.Duration(max(len(d), 1))
}

func (c *contender) walls() []time.Duration {
	d := make([]time.Duration, len(c.samples))
	for i, s := range c.samples {
		d[i] = s.wall
	}
	return d
}

// cpu is the mean of a run. A session's is what it and its children have used in
// all the rounds, by their number: the kernel tells that in ticks of 10 ms.
func (c *contender) cpu() time.Duration {
	if c.total != nil {
		return c.used / time.Duration(max(len(c.samples), 1))
	}
	d := make([]time.Duration, len(c.samples))
	for i, s := range c.samples {
		d[i] = s.cpu
	}
	return mean(d)
}

// ratios are a's times by b's in the same round.
func ratios(a, b []time.Duration) []float64 {
	r := make([]float64, len(a))
	for i := range r {
		r[i] = float64(a[i]) / float64(b[i])
	}
	return r
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }

// table writes rows below their heads, in Markdown: the first column is text.
func table(heads []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(heads))
	for _, row := range append([][]string{heads}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				fmt.Printf("| %s%s ", cell, space)
			} else {
				fmt.Printf("| %s%s ", space, cell)
			}
		}
		fmt.Println("|")
	}
	fmt.Println()
	line(heads)
	fmt.Print("|", strings.Repeat("-", widths[0]+2), "|", strings.Repeat("---:|", len(heads)-1), "\n")
	for _, row := range rows {
		line(row)
	}
}

// above is by how much one is more than the floor.
func above(d, floor time.Duration) string {
	if d <= floor {
		return "–"
	}
	return ms(d - floor)
}

// report writes the table of some contenders, with the median of the ratios of one
// round to each of refs.
func report(title string, list []*contender, refs ...string) {
	if len(list) == 0 || len(list[0].samples) == 0 {
		return
	}
	heads := []string{title, "median ms", "p95 ms", "p99 ms", "min ms", "CPU ms"}
	var by []*contender
	var floor *contender
	for _, name := range refs {
		if i := slices.IndexFunc(list, func(c *contender) bool { return c.name == name }); i >= 0 {
			by = append(by, list[i])
			heads = append(heads, "by "+name)
			if name == floorName {
				floor = list[i]
				heads = append(heads, "ms above it")
			}
		}
	}
	var rows [][]string
	for _, c := range list {
		w := c.walls()
		row := []string{c.name, ms(median(w)), ms(quantile(w, 0.95)), ms(quantile(w, 0.99)), ms(quantile(w, 0)), ms(c.cpu())}
		if c.elsewhere {
			row[5] = "–"
		}
		for _, b := range by {
			row = append(row, fmt.Sprintf("%.2f", median(ratios(w, b.walls()))))
			if b == floor {
				row = append(row, above(median(w), median(floor.walls())))
			}
		}
		rows = append(rows, row)
	}
	table(heads, rows)
	for _, c := range list {
		if c.failed > 0 {
			fmt.Printf("\n%s failed %d times, and was run again\n", c.name, c.failed)
		}
	}
}
