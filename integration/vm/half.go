package main

import (
	"fmt"
	"hash/fnv"
	"os/exec"
	"regexp"
	"strings"
)

// ages are the tests of what kernels of different age do in different ways, or may
// come to: those that run on both, whatever is halved.
var ages = regexp.MustCompile("Landlock|Mount|ReadOnly|Kernel|SystemCalls|ForeignCalls|Namespaces|SocketOptions|Requests|Quotas|Memory|Pids|IO[A-Z]|KilledAt|AnyEnd")

// halves has two machines that share a suite run one half each of what both would run.
func halves(machines []machine) error {
	first := map[string]*suite{}
	for _, m := range machines {
		for i := range m.suites {
			s := &m.suites[i]
			switch other := first[s.pkg]; {
			case !s.halved:
			case other == nil:
				first[s.pkg] = s
			default:
				cmd := exec.Command("./"+binaryName(s.pkg), "-test.list=^Test")
				cmd.Dir = m.built("tests")
				names, err := cmd.Output()
				if err != nil {
					return fmt.Errorf("the tests of %s: %w", s.pkg, err)
				}
				halve(other, s, strings.Fields(string(names)))
			}
		}
	}
	return nil
}

func halve(a, b *suite, names []string) {
	runs := func(s *suite, name string) bool {
		return regexp.MustCompile(s.run).MatchString(name) && (s.skip == "" || !regexp.MustCompile(s.skip).MatchString(name))
	}
	var left [2][]string
	for _, n := range names {
		if runs(a, n) && runs(b, n) && !ages.MatchString(n) {
			left[halfOf(n)] = append(left[halfOf(n)], n)
		}
	}
	a.leaveOut(left[0])
	b.leaveOut(left[1])
}

func (s *suite) leaveOut(names []string) {
	if len(names) == 0 {
		return
	}
	more := "^(" + strings.Join(names, "|") + ")$"
	if s.skip != "" {
		more = s.skip + "|" + more
	}
	s.skip = more
}

// halfOf is a test's half by its name: another test changes no other's.
func halfOf(name string) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() >> 16 & 1)
}
