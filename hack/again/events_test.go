package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stream is written "ACTION PACKAGE [TEST] [: OUTPUT]", a line each.
func stream(t *testing.T, lines ...string) []event {
	t.Helper()
	var text strings.Builder
	for _, l := range lines {
		l, output, _ := strings.Cut(l, ": ")
		f := append(strings.Fields(l), "", "")
		fmt.Fprintf(&text, `{"Action":%q,"Package":%q,"Test":%q,"Output":%q}`+"\n", f[0], f[1], f[2], output)
	}
	events, err := read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream []string
		want   string
	}{
		{"none", []string{"pass p TestA", "pass p", "skip q"}, ""},
		{"by their top names, each once", []string{"fail p TestA/x", "fail p TestA", "pass p TestB", "fail p TestC", "fail p", "fail q TestA", "fail q"}, "p TestA TestC|q TestA"},
		{"a package without a test", []string{"fail p"}, "p"},
		{"a panic takes the tests after it along", []string{"output p TestA: panic: runtime error", "fail p TestA", "fail p"}, "p"},
		{"a signal of the binary", []string{"pass p TestA", "output p: exit status 2", "fail p"}, "p"},
		{"the usual end of a binary with failures", []string{"fail p TestA", "output p: exit status 1", "fail p"}, "p TestA"},
		{"no end", []string{"pass p TestA", "run p TestB"}, "p"},
		{"a program that says panic in what passes", []string{"output p TestA: panic: no", "pass p TestA", "pass p"}, ""},
	} {
		var got []string
		for _, f := range failures(stream(t, c.stream...)) {
			got = append(got, strings.Join(append([]string{f.pkg}, f.tests...), " "))
		}
		if g := strings.Join(got, "|"); g != c.want {
			t.Errorf("%s: %q, want %q", c.name, g, c.want)
		}
	}
}

// The second run stands for the first of what failed, and for nothing else; a skip
// that the first run had is still judged.
func TestMerge(t *testing.T) {
	first := stream(t, "pass p TestA", "skip p TestB", "fail p TestC/x", "fail p TestC", "fail p", "pass q TestC", "pass q", "output r TestA: fatal error: x", "pass r TestB")
	second := stream(t, "pass p TestC/x", "pass p TestC", "pass p", "fail r TestA", "fail r")
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for path, events := range map[string][]event{a: first, b: second} {
		var text []byte
		for _, e := range events {
			text = append(append(text, e.line...), '\n')
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := mergeFiles(a, b); err != nil {
		t.Fatal(err)
	}
	merged, err := readFile(a)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range merged {
		got = append(got, strings.TrimSpace(e.Action+" "+e.Package+" "+e.Test))
	}
	want := []string{"pass p TestA", "skip p TestB", "pass q TestC", "pass q", "pass p TestC/x", "pass p TestC", "pass p", "fail r TestA", "fail r"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// What is no bad luck stands: many failures, a whole package, a package whose tests
// hold a claim each.
func TestAllowed(t *testing.T) {
	two := []failure{{"p", []string{"TestA"}}, {"q/escape", []string{"TestB"}}}
	for _, c := range []struct {
		failed []failure
		most   int
		never  string
		want   string
	}{
		{two, 0, "", ""},
		{two, 2, "", ""},
		{two, 1, "", "2 tests failed, which is more than bad luck (1)"},
		{two, 2, "/escape$", "a test of q/escape that fails once has failed"},
		{[]failure{{pkg: "p"}}, 0, "", ""},
		{[]failure{{pkg: "p"}}, 2, "", "p failed as a whole"},
	} {
		got := ""
		if err := allowed(c.failed, c.most, c.never); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v, %d, %q: %q, want %q", c.failed, c.most, c.never, got, c.want)
		}
	}
}
