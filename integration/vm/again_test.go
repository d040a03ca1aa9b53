package main

import (
	"strings"
	"testing"
)

// What failed is all that the second boot runs: of a package that has no end all of
// the plan, of a test the parts that the plan wants, and what is left out stays so.
func TestOnlyWhatFailed(t *testing.T) {
	m := machine{name: "m", suites: []suite{
		{pkg: "a", skip: "^TestSlow$"},
		{pkg: "b", run: "^Test(Sources|Home)$/^9p$"},
		{pkg: "c", run: "^TestWhole", skip: "Many"},
		{pkg: "d"},
	}}
	part := m.only(map[string][]string{"a": {"TestX", "TestY"}, "b": {"TestHome"}, "c": nil})
	want := []suite{
		{pkg: "a", run: "^(TestX|TestY)$", skip: "^TestSlow$"},
		{pkg: "b", run: "^(TestHome)$/^9p$"},
		{pkg: "c", run: "^TestWhole", skip: "Many"},
	}
	if len(part.suites) != len(want) {
		t.Fatalf("%+v", part.suites)
	}
	for i, s := range part.suites {
		if s != want[i] {
			t.Errorf("%+v, want %+v", s, want[i])
		}
	}
	if len(m.suites) != 4 || m.suites[0].run != "" {
		t.Errorf("the plan has changed: %+v", m.suites)
	}
	if part.results() == m.results() {
		t.Error("the second run writes over the first")
	}
	c := newColumn("m")
	c.flaky = names(map[string][]string{"b": {"TestHome"}, "a": {"TestX", "TestY"}, "c": nil})
	var out strings.Builder
	total(&out, []*column{c})
	if want := "flaky or broken: m: a TestX TestY\nflaky or broken: m: b TestHome\nflaky or broken: m: c\n0 passed, 0 failed, 0 skipped\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}
