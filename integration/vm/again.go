package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// again boots each machine in which something failed once more, for that alone and
// with no other beside it: emulation is slow, and a neighbour's load passes a test's
// patience. Whatever comes of it, what failed the first time is named at the end.
func again(machines []machine, columns []*column) error {
	for i, m := range machines {
		if columns[i].bad == "" {
			continue
		}
		failed, err := m.failed(columns[i])
		if err != nil {
			return err
		}
		if columns[i], err = m.second(columns[i], failed); err != nil {
			return err
		}
	}
	return nil
}

// failed are the tests that failed in the machine, by package; a package without
// tests is to be run whole. One that has no event at all never began.
func (m machine) failed(c *column) (map[string][]string, error) {
	text, err := exec.Command(filepath.Join(work, "again"), "list", m.results()).Output()
	if err != nil {
		return nil, fmt.Errorf("again list %s: %w", m.results(), err)
	}
	failed := map[string][]string{}
	for line := range bytes.Lines(text) {
		f := strings.Split(strings.TrimSpace(string(line)), "\t")
		failed[strings.TrimPrefix(f[0], m.name+" ")] = f[1:]
	}
	for _, s := range m.suites {
		if c.cells[s.pkg] == nil {
			failed[s.pkg] = nil
		}
	}
	return failed, nil
}

// only is the machine with these tests alone.
func (m machine) only(failed map[string][]string) machine {
	m.again = true
	m.suites = slices.DeleteFunc(slices.Clone(m.suites), func(s suite) bool { _, is := failed[s.pkg]; return !is })
	for i := range m.suites {
		s := &m.suites[i]
		if tests := failed[s.pkg]; len(tests) > 0 {
			_, parts, of := strings.Cut(s.run, "/") // of a test's parts the plan may want some
			s.run = "^(" + strings.Join(tests, "|") + ")$"
			if of {
				s.run += "/" + parts
			}
		}
	}
	return m
}

// second is the column with the second run in place of what failed in the first.
func (m machine) second(first *column, failed map[string][]string) (*column, error) {
	part := m.only(failed)
	if len(part.suites) == 0 { // a skip that must not be, or a machine that said no status
		return first, nil
	}
	fmt.Printf("vm: %s: what failed runs once more\n", m.name)
	begin := time.Now()
	ran := part.run()
	if text, err := exec.Command(filepath.Join(work, "again"), "merge", m.results(), part.results()).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("again merge: %v, %s", err, text)
	}
	c := newColumn(m.name)
	c.must, c.bad, c.took = first.must, ran.bad, first.took+time.Since(begin)
	in, err := os.Open(m.results())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := c.read(in); err != nil {
		return nil, err
	}
	summarise(m, c)
	c.flaky = names(failed)
	return c, nil
}

func names(failed map[string][]string) []string {
	var list []string
	for pkg, tests := range failed {
		list = append(list, strings.TrimSpace(pkg+" "+strings.Join(tests, " ")))
	}
	slices.Sort(list)
	return list
}
