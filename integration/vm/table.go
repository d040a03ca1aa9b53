package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// column is what ran in one place.
type column struct {
	name  string
	took  time.Duration
	bad   string   // why the whole column fails
	begun bool     // a suite has begun in it
	flaky []string // what failed the first time, and ran once more
	must  map[string]bool
	cells map[string]*cell
}

// cell counts the tests of one package in one place.
type cell struct {
	passed, failed, skipped int
	complete                bool // the package itself has passed
}

func newColumn(name string) *column {
	return &column{name: name, must: map[string]bool{}, cells: map[string]*cell{}}
}

// event is a line of go test -json.
type event struct {
	Time          time.Time
	Action        string
	Package, Test string
}

// read counts a stream of events.
func (c *column) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	var first, last time.Time
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the go command's own words; testsum shows them
		}
		if first.IsZero() {
			first = e.Time
		}
		if !e.Time.IsZero() {
			last = e.Time
		}
		c.count(e)
	}
	if c.took == 0 {
		c.took = last.Sub(first)
	}
	return lines.Err()
}

func (c *column) count(e event) {
	_, pkg, ok := strings.Cut(e.Package, " ") // "MACHINE PACKAGE"
	if !ok {
		pkg = strings.TrimPrefix(e.Package, "sandglass/")
	}
	x := c.cells[pkg]
	if x == nil {
		x = &cell{}
	}
	switch {
	case e.Action == "fail": // of a package too: it may have died between two tests
		x.failed++
	case e.Test == "" && e.Action == "pass":
		x.complete = true
	case e.Test == "":
		return
	case e.Action == "pass":
		x.passed++
	case e.Action == "skip":
		x.skipped++
	default:
		return
	}
	c.cells[pkg] = x
}

// readHost reads the host's own results. There every package with a test that
// the machines run must have run too.
func readHost(path string) (*column, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := newColumn("host")
	for _, m := range plan() {
		if m.byName {
			continue
		}
		for _, s := range m.suites {
			c.must[s.pkg] = !onlyMachines[s.pkg]
		}
	}
	return c, c.read(f)
}

// onlyMachines are packages of which all tests may be skipped on a host.
var onlyMachines = map[string]bool{"integration/v2": true, "integration/hosts": true}

// text is the cell in the table, and whether it is as it must be.
func (c *column) text(pkg string) (string, bool) {
	x := c.cells[pkg]
	switch {
	case x != nil && x.failed > 0:
		return fmt.Sprintf("FAILED %d", x.failed), false
	case c.must[pkg] && (x == nil || x.passed == 0):
		return "MISSING", false
	case c.must[pkg] && !x.complete: // it hung, or the machine died in it
		return "NO END", false
	case x == nil:
		return "-", true
	case x.skipped > 0:
		return fmt.Sprintf("%d (%d skipped)", x.passed, x.skipped), true
	}
	return fmt.Sprint(x.passed), true
}

// report prints the table, the times and the count, and says whether all is well.
func report(w io.Writer, columns []*column) bool {
	packages := map[string]bool{}
	for _, c := range columns {
		for p := range c.must {
			packages[p] = true
		}
		for p := range c.cells {
			packages[p] = true
		}
	}
	good := true
	row := func(first string, rest []string) {
		fmt.Fprintf(w, "%-28s", first)
		for _, s := range rest {
			fmt.Fprintf(w, " %18s", s)
		}
		fmt.Fprintln(w)
	}
	var names, times []string
	for _, c := range columns {
		names, times = append(names, c.name), append(times, fmt.Sprintf("%.0f s", c.took.Seconds()))
	}
	fmt.Fprintln(w, "Tests that passed, by where they ran (- is not planned there)")
	row("", names)
	for _, p := range slices.Sorted(maps.Keys(packages)) {
		var texts []string
		for _, c := range columns {
			text, ok := c.text(p)
			texts, good = append(texts, text), good && ok
		}
		row(p, texts)
	}
	row("time", times)
	return total(w, columns) && good
}

// total prints what is wrong with whole columns, and the count.
func total(w io.Writer, columns []*column) bool {
	good := true
	var sum cell
	for _, c := range columns {
		for _, f := range c.flaky {
			fmt.Fprintf(w, "flaky or broken: %s: %s\n", c.name, f)
		}
		if c.bad != "" {
			fmt.Fprintf(w, "failed: %s: %s\n", c.name, c.bad)
			good = false
		}
		for p, x := range c.cells {
			sum.passed, sum.failed, sum.skipped = sum.passed+x.passed, sum.failed+x.failed, sum.skipped+x.skipped
			if text, ok := c.text(p); !ok && x.failed == 0 {
				fmt.Fprintf(w, "failed: %s: %s: %s\n", c.name, p, text)
				sum.failed++
			}
		}
		for p := range c.must {
			if c.must[p] && c.cells[p] == nil {
				fmt.Fprintf(w, "failed: %s: %s did not run\n", c.name, p)
				sum.failed++
			}
		}
	}
	if !good && sum.failed == 0 {
		sum.failed = 1
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped)
	return good && sum.failed == 0
}
