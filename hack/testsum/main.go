// Command testsum reads go test -json on stdin and prints what a person needs:
// a line for each package, the output of what failed, every skip with its
// reason, and the count. It exits 1 when something failed, when nothing ran,
// and when a test was skipped that this machine could have run.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is what go test -json writes, see go doc test2json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	ImportPath  string // of build output
	FailedBuild string
}

// summary collects the events of all packages.
type summary struct {
	out      io.Writer
	output   map[string][]string // of a test or package that still runs
	passed   int
	failed   []string
	skipped  []skip
	packages int
}

type skip struct{ name, reason string }

func main() {
	skips := flag.String("skips", "", "`FILE` of the skips that a machine may have")
	flag.Parse()
	var known []rule
	if *skips != "" {
		var err error
		if known, err = readRules(*skips); err != nil {
			fmt.Fprintln(os.Stderr, "testsum:", err)
			os.Exit(2)
		}
	}
	s := &summary{out: os.Stdout, output: map[string][]string{}}
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	os.Exit(s.report(known, mustRun(os.Getenv("SANDGLASS_MUST_RUN"))))
}

func mustRun(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

func (s *summary) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// The go command's own words, for instance of a flag it does not know.
			fmt.Fprintln(s.out, lines.Text())
			continue
		}
		s.take(e)
	}
	return lines.Err()
}

func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		s.output[key] = append(s.output[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(s.out, e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	text := s.output[key]
	delete(s.output, key)
	switch {
	case e.Action == "fail":
		s.failed = append(s.failed, strings.TrimSpace(key))
		fmt.Fprintf(s.out, "FAIL  %s (%.1fs)\n%s", strings.TrimSpace(key), e.Elapsed, strings.Join(text, ""))
	case e.Test == "":
		s.packages++
		if e.Action == "pass" {
			fmt.Fprintf(s.out, "ok    %s (%.1fs)\n", e.Package, e.Elapsed)
		}
	case e.Action == "skip":
		s.skipped = append(s.skipped, skip{key, reason(text)})
	default:
		s.passed++
	}
}

// reason is the line with SKIP(...) of a skipped test's output, or all of it.
func reason(output []string) string {
	for _, line := range output {
		if _, after, ok := strings.Cut(line, "SKIP("); ok {
			return "SKIP(" + strings.TrimSpace(after)
		}
	}
	var words []string
	for _, line := range output {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "===") && !strings.HasPrefix(t, "---") {
			words = append(words, t)
		}
	}
	return "no reason given: " + strings.Join(words, " ")
}

// report prints the end and returns the exit code.
func (s *summary) report(known []rule, must []string) int {
	code := 0
	for _, k := range s.skipped {
		why := judge(known, must, k.reason)
		if why != "" {
			code = 1
			s.failed = append(s.failed, k.name)
			fmt.Fprintf(s.out, "BAD SKIP  %s: %s: %s\n", k.name, k.reason, why)
			continue
		}
		fmt.Fprintf(s.out, "skip  %s: %s\n", k.name, k.reason)
	}
	for _, name := range s.failed {
		fmt.Fprintf(s.out, "failed: %s\n", name)
	}
	if len(s.failed) > 0 || s.passed == 0 {
		code = 1
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), len(s.skipped))
	return code
}
