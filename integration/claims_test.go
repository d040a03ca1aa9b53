package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// claim is one row of docs/THREATMODEL.md.
type claim struct {
	number   int
	tests    []string // package:TestName
	controls []string // of the table of mutations
	why      string   // the last column's words
}

var quoted = regexp.MustCompile("`([^`]+)`")

func claims(t *testing.T) []claim {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs/THREATMODEL.md"))
	if err != nil {
		t.Fatal(err)
	}
	var list []claim
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		id := strings.TrimSpace(cells[0])
		if !strings.HasPrefix(line, "| C") {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(id, "C"))
		if err != nil || len(cells) != 4 {
			t.Fatalf("not a claim: %q", line)
		}
		c := claim{number: n, why: strings.TrimSpace(cells[3])}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			c.tests = append(c.tests, m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			c.controls = append(c.controls, m[1])
		}
		list = append(list, c)
	}
	return list
}

// existing are all tests of the repository, as package:TestName.
func existing(t *testing.T) map[string]bool {
	t.Helper()
	_, files := sourceFiles(t)
	exists := map[string]bool{}
	for path, f := range files {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		for name := range testFunctions(f) {
			exists[filepath.Dir(path)+":"+name] = true
		}
	}
	return exists
}

func TestEveryClaimHasATest(t *testing.T) {
	exists := existing(t)
	list := claims(t)
	if len(list) < 50 {
		t.Fatalf("only %d claims were read", len(list))
	}
	for i, c := range list {
		if c.number != i+1 {
			t.Errorf("claim %d of the page is numbered C%d", i+1, c.number)
		}
		if len(c.tests) == 0 {
			t.Errorf("C%d names no test", c.number)
		}
		for _, name := range c.tests {
			if !exists[name] {
				t.Errorf("C%d names %s, which does not exist", c.number, name)
			}
		}
		if c.why == "" || c.why == "-" {
			t.Errorf("C%d does not say what was taken away", c.number)
		}
	}
}

// Every hostile test belongs to a claim: what is tried is also promised.
func TestEveryEscapeTestHasAClaim(t *testing.T) {
	_, files := sourceFiles(t)
	named := map[string]bool{}
	for _, c := range claims(t) {
		for _, name := range c.tests {
			named[name] = true
		}
	}
	for path, f := range files {
		dir := filepath.Dir(path)
		if dir != "integration/escape" && dir != "integration/leftovers" {
			continue
		}
		for name := range testFunctions(f) {
			if name != "TestMain" && !named[dir+":"+name] {
				t.Errorf("%s:%s belongs to no claim", dir, name)
			}
		}
	}
}

// The claims' controls and the mutations are the same, and each claim's control
// is one whose loss the claim's own tests were seen to notice.
func TestEveryControlIsTakenAway(t *testing.T) {
	used := map[string]bool{}
	for _, c := range claims(t) {
		for _, control := range c.controls {
			used[control] = true
			i := slices.IndexFunc(mutations, func(m mutation) bool { return m.control == control })
			if i < 0 {
				t.Errorf("C%d: no mutation takes away %q", c.number, control)
				continue
			}
			m := mutations[i]
			pkg := m.dir() + ":"
			if !slices.ContainsFunc(m.fail, func(test string) bool { return slices.Contains(c.tests, pkg+test) }) {
				t.Errorf("C%d: taking away %q makes %v fail, none of which is the claim's: %v", c.number, control, m.fail, c.tests)
			}
		}
	}
	for _, m := range mutations {
		if !used[m.control] {
			t.Errorf("the mutation %q belongs to no claim", m.control)
		}
	}
}

// The pages on hosts name tests that are there.
func TestHostsAreTested(t *testing.T) {
	names := map[string]bool{}
	for name := range existing(t) {
		_, test, _ := strings.Cut(name, ":")
		names[test] = true
	}
	for _, page := range []string{"docs/HOSTS.md", "docs/DOCTOR.md"} {
		text, err := os.ReadFile(filepath.Join(testkit.Root(t), page))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names %d tests", page, len(found))
		}
		for _, test := range found {
			if !names[test] {
				t.Errorf("%s: there is no %s", page, test)
			}
		}
	}
}
