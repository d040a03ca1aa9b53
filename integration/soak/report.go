package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sandglass/internal/testkit/machine"
)

// head says what begins, with the seed first: a crash must not hide it.
func (s *soak) head() {
	length := fmt.Sprintf("%g minutes", s.o.minutes)
	if s.o.runs > 0 {
		length = fmt.Sprintf("%d runs", s.o.runs)
	}
	fmt.Printf("seed %d, %d at once, %s, %d programs\n%s\n", s.o.seed, s.o.at, length, len(s.count), machine.Line())
	fmt.Printf("memory held by %s, CPU rate by %s, processes by %s\n", s.enforced["memory"], s.enforced["cpus"], s.enforced["pids"])
}

// progress is a line for each look.
func (s *soak) progress() {
	if s.o.quiet {
		return
	}
	fmt.Fprintf(os.Stderr, "soak: %s: %d runs, %d wrong verdicts, %d leftovers\n",
		time.Since(s.began).Round(time.Second), s.all(), s.wrong, len(s.left))
}

// kinds are what leftovers are counted by.
var kinds = []string{"process", "cgroup", "mount", "namespace", "file", "ipc", "key", "net", "socket", "descriptor", "goroutine", "connection", "session"}

// report prints the figures and returns the exit code.
func (s *soak) report(peak *figures) int {
	took := time.Since(s.began)
	s.perProgram()
	fmt.Printf("\nruns           %d in %s, %.1f per second; %d by the command, %d by the Go API, %d by sessions, of them %d warm\n",
		s.all(), took.Round(time.Second), float64(s.all())/took.Seconds(), s.runs["cli"], s.runs["api"], s.runs["session"], s.warm)
	fmt.Printf("failures       %d\n", s.fails)
	fmt.Printf("wrong verdicts %d\n", s.wrong)
	fmt.Printf("leftovers      %d (%s), %d looks\n", len(s.left), s.byKind(), s.looks)
	a, b := s.first, s.last
	const mb = 1 << 20
	fmt.Printf("caller, first look, last, peak:\n")
	fmt.Printf("  RSS          %.1f MB, %.1f MB, %.1f MB\n", float64(a.rss)/mb, float64(b.rss)/mb, float64(peak.rss)/mb)
	fmt.Printf("  Go heap      %.2f MB, %.2f MB\n", float64(a.heap)/mb, float64(b.heap)/mb)
	fmt.Printf("  descriptors  %d, %d, %d\n", a.descriptors, b.descriptors, peak.descriptors)
	fmt.Printf("  threads      %d, %d, %d\n", a.threads, b.threads, peak.threads)
	if b.heap > a.heap+growth {
		fmt.Printf("FAIL: the heap has grown by %.2f MB\n", float64(b.heap-a.heap)/mb)
		return 1
	}
	if s.fleet != nil && s.fleet.grown() {
		return 1
	}
	if s.wrong > 0 || len(s.left) > 0 || s.fails > 0 {
		fmt.Println("FAIL")
		return 1
	}
	fmt.Println("ok")
	return 0
}

func (s *soak) perProgram() {
	fmt.Printf("\n| program | runs | wrong | mean ms | longest ms |\n|---|---:|---:|---:|---:|\n")
	for _, c := range s.deck {
		t := s.count[c.p]
		if t == nil {
			continue // told with its other way
		}
		fmt.Printf("| %s | %d | %d | %d | %d |\n", c.p.name, t.runs, t.wrong, t.total.Milliseconds()/int64(max(1, t.runs)), t.worst.Milliseconds())
		delete(s.count, c.p)
	}
}

func (s *soak) all() int { return s.runs["cli"] + s.runs["api"] + s.runs["session"] }

func (s *soak) byKind() string {
	var list []string
	other := len(s.left)
	for _, k := range kinds {
		n := 0
		for _, x := range s.left {
			if strings.HasPrefix(x, k+": ") {
				n++
			}
		}
		other -= n
		list = append(list, fmt.Sprintf("%s %d", k, n))
	}
	if other > 0 {
		list = append(list, fmt.Sprintf("other %d", other))
	}
	return strings.Join(slices.Clip(list), ", ")
}
