package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

const stream = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: SKIP(want root, have uid 7)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1.5}
{"Action":"skip","Package":"no-tests"}
`

const failure = `{"Action":"output","Package":"q","Test":"TestC","Output":"wrong: 1, not 2\n"}
{"Action":"fail","Package":"q","Test":"TestC","Elapsed":0.1}
{"Action":"fail","Package":"q"}
`

func summarise(t *testing.T, in string, known []rule, must ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	s := &summary{out: &out, output: map[string][]string{}}
	if err := s.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	code := s.report(known, must)
	return out.String(), code
}

func TestSummary(t *testing.T) {
	root := []rule{{"root", regexp.MustCompile(`SKIP\(want root`)}}
	skipped := "skip  p TestB: SKIP(want root, have uid 7)\n"
	for _, c := range []struct {
		name, in string
		known    []rule
		must     []string
		want     string
		code     int
	}{
		{"all well", stream, root, nil, "ok    p (1.5s)\n" + skipped + "1 passed, 0 failed, 1 skipped\n", 0},
		{"a known skip of what is missing", stream, root, []string{"gcc"}, "ok    p (1.5s)\n" + skipped + "1 passed, 0 failed, 1 skipped\n", 0},
		{"a skip of what is there", stream, root, []string{"gcc", "root"}, "ok    p (1.5s)\n" +
			"BAD SKIP  p TestB: SKIP(want root, have uid 7): this machine has root\nfailed: p TestB\n1 passed, 1 failed, 1 skipped\n", 1},
		{"a skip that nobody knows", stream, nil, []string{"gcc"}, "ok    p (1.5s)\n" +
			"BAD SKIP  p TestB: SKIP(want root, have uid 7): hack/skips.txt does not know this skip\nfailed: p TestB\n1 passed, 1 failed, 1 skipped\n", 1},
		{"a failure", stream + failure, root, nil, "ok    p (1.5s)\nFAIL  q TestC (0.1s)\nwrong: 1, not 2\nFAIL  q (0.0s)\n" + skipped +
			"failed: q TestC\nfailed: q\n1 passed, 2 failed, 1 skipped\n", 1},
		{"nothing ran", "", root, nil, "0 passed, 0 failed, 0 skipped\n", 1},
		{"no JSON", "flag provided but not defined\n", root, nil, "flag provided but not defined\n0 passed, 0 failed, 0 skipped\n", 1},
		{"does not build", `{"Action":"build-output","Output":"x.go:1: bad\n"}` + "\n" + `{"Action":"fail","Package":"r","FailedBuild":"r"}` + "\n", root, nil,
			"x.go:1: bad\nFAIL  r (0.0s)\nfailed: r\n0 passed, 1 failed, 0 skipped\n", 1},
	} {
		got, code := summarise(t, c.in, c.known, c.must...)
		if got != c.want || code != c.code {
			t.Errorf("%s: exit %d\n%s\nwant %d\n%s", c.name, code, got, c.code, c.want)
		}
	}
}

func TestSkipsFile(t *testing.T) {
	rules, err := readRules("../skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	for reason, feature := range map[string]string{
		"SKIP(want root, have uid 1000)":                                     "root",
		`SKIP(want controllers on cgroup v2, have tree "v1" with version 1)`: "cgroup2",
		"SKIP(want cgroup1-memory, have cgroup2)":                            "cgroup1",
		"SKIP(want the v1 memory controller: not mounted)":                   "cgroup1-memory",
		"SKIP(want python3, have no python3 on PATH)":                        "python3",
		"SKIP(want libseccomp's headers, apt-get install libseccomp-dev)":    "seccompc",
	} {
		if why := judge(rules, []string{feature}, reason); why != "this machine has "+feature {
			t.Errorf("%s: %q, want it to belong to %s", reason, why, feature)
		}
		if why := judge(rules, []string{"something-else"}, reason); why != "" {
			t.Errorf("%s: %q on a machine without %s", reason, why, feature)
		}
	}
	if why := judge(rules, []string{"x"}, "no reason given: "); why == "" {
		t.Error("a skip without a reason is accepted")
	}
}
