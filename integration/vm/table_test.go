package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const stream = `{"Action":"pass","Package":"m integration/a","Test":"TestA"}
{"Action":"skip","Package":"m integration/a","Test":"TestB"}
{"Action":"pass","Package":"m integration/a"}
`

// A cell that must run and did not is a failure, whatever else passed.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		must         []string
		bad          string
		good         bool
		want         []string
	}{
		{"all that must run did", stream, []string{"integration/a"}, "", true, []string{"1 (1 skipped)", "1 passed, 0 failed, 1 skipped\n"}},
		{"a package is missing", stream, []string{"integration/a", "integration/b"}, "", false,
			[]string{"MISSING", "failed: m: integration/b did not run\n", "1 passed, 1 failed, 1 skipped\n"}},
		{"all of it is skipped", strings.Replace(stream, `"pass"`, `"skip"`, 1), []string{"integration/a"}, "", false,
			[]string{"MISSING", "failed: m: integration/a: MISSING\n", "0 passed, 1 failed, 2 skipped\n"}},
		{"the machine died in it", strings.Replace(stream, `{"Action":"pass","Package":"m integration/a"}`, `{"Action":"fail","Package":"m integration/a"}`, 1),
			[]string{"integration/a"}, "", false, []string{"FAILED 1", "1 passed, 1 failed, 1 skipped\n"}},
		{"the machine died between two tests", strings.Replace(stream, `{"Action":"pass","Package":"m integration/a"}`, "", 1), []string{"integration/a"}, "", false,
			[]string{"NO END", "failed: m: integration/a: NO END\n", "1 passed, 1 failed, 1 skipped\n"}},
		{"the machine said no status", stream, []string{"integration/a"}, "the machine: exit status 125", false,
			[]string{"failed: m: the machine: exit status 125\n", "1 passed, 1 failed, 1 skipped\n"}},
		{"nothing must run", "", nil, "", true, []string{"0 passed, 0 failed, 0 skipped\n"}},
	} {
		col := newColumn("m")
		col.bad = c.bad
		for _, p := range c.must {
			col.must[p] = true
		}
		if err := col.read(strings.NewReader(c.stream)); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if good := report(&b, []*column{col}); good != c.good {
			t.Errorf("%s: good is %t\n%s", c.name, good, b.String())
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, b.String())
			}
		}
	}
}

// Every machine's script names each of its suites once, and every suite's
// filters are for the shell, whatever is in them.
func TestScript(t *testing.T) {
	for _, m := range plan() {
		text := m.script("/a dir/it's")
		source := `'/a dir/it'\''s'`
		if m.arch != "" {
			source = "'/src'"
		}
		if !strings.HasPrefix(text, "source="+source+"\n") {
			t.Errorf("%s: %.60q", m.name, text)
		}
		seen := map[string]int{}
		for _, s := range m.suites {
			seen[s.pkg]++
			if n := strings.Count(text, "' '"+s.pkg+"' '"); n != 1 || seen[s.pkg] != 1 {
				t.Errorf("%s: %s is in the script %d times", m.name, s.pkg, n)
			}
			if s.user && m.init != "systemd" {
				t.Errorf("%s: %s for a user, without systemd to delegate", m.name, s.pkg)
			}
		}
	}
}

// What two machines share is run by one of them at least, and by both where kernels
// differ; what only one of them has stays there.
func TestHalves(t *testing.T) {
	names := []string{"TestMountTarget", "TestOnlyOlder", "TestOnlyNewer"}
	for i := range 40 {
		names = append(names, fmt.Sprintf("TestShared%d", i))
	}
	older, newer := suite{skip: "OnlyNewer"}, suite{run: "^Test", skip: "^TestOnlyOlder$"}
	halve(&older, &newer, names)
	var all, both []string
	for _, n := range names {
		o, w := !regexp.MustCompile(older.skip).MatchString(n), !regexp.MustCompile(newer.skip).MatchString(n)
		if o || w {
			all = append(all, n)
		}
		if o && w {
			both = append(both, n)
		}
	}
	if !slices.Equal(all, names) || !slices.Equal(both, names[:1]) {
		t.Errorf("run: %q, by both: %q", all, both)
	}
	if l := len(older.skip) - len(newer.skip); l < -300 || l > 300 {
		t.Errorf("one has most: %q, %q", older.skip, newer.skip)
	}
}
