package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json: what is asked of it, and the line.
type event struct {
	Action, Package, Test, Output string
	line                          []byte
}

// top is the test whose part this one is.
func (e event) top() string {
	name, _, _ := strings.Cut(e.Test, "/")
	return name
}

func read(r io.Reader) ([]event, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	var all []event
	for lines.Scan() {
		e := event{line: bytes.Clone(lines.Bytes())}
		_ = json.Unmarshal(e.line, &e) // the go command's own words are of no package, and are kept
		all = append(all, e)
	}
	return all, lines.Err()
}

// failure is what is to be run again of one package; without tests all of it.
type failure struct {
	pkg   string
	tests []string
}

// died is said in the midst of a package's output by a binary that ends before
// its last test, in whichever test's name. A test whose program says it costs a
// longer second run, and nothing else.
var died = regexp.MustCompile(`^(panic: |fatal error: |exit status [^1])`)

// failures are in the order of the stream.
func failures(events []event) []failure {
	var all []failure
	begun, ended, whole := map[string]bool{}, map[string]bool{}, map[string]bool{}
	at := func(pkg string) *failure {
		i := slices.IndexFunc(all, func(f failure) bool { return f.pkg == pkg })
		if i < 0 {
			all, i = append(all, failure{pkg: pkg}), len(all)
		}
		return &all[i]
	}
	for _, e := range events {
		begun[e.Package] = begun[e.Package] || e.Package != ""
		switch {
		case e.Action == "output":
			whole[e.Package] = whole[e.Package] || died.MatchString(e.Output)
		case e.Test == "" && (e.Action == "pass" || e.Action == "skip"):
			ended[e.Package] = true
		case e.Test == "" && e.Action == "fail":
			ended[e.Package] = true
			at(e.Package)
		case e.Action == "fail":
			if f := at(e.Package); !slices.Contains(f.tests, e.top()) {
				f.tests = append(f.tests, e.top())
			}
		}
	}
	for _, e := range events {
		if pkg := e.Package; begun[pkg] && !ended[pkg] {
			at(pkg)
			whole[pkg] = true
		}
	}
	for i := range all {
		if whole[all[i].pkg] {
			all[i].tests = nil
		}
	}
	return all
}

// merge leaves of the first run out what failed, and the end of its packages, and
// puts all of the second behind.
func merge(first, second []event) []byte {
	var out bytes.Buffer
	failed := failures(first)
	for _, e := range first {
		i := slices.IndexFunc(failed, func(f failure) bool { return f.pkg == e.Package })
		if i >= 0 && (e.Test == "" || len(failed[i].tests) == 0 || slices.Contains(failed[i].tests, e.top())) {
			continue
		}
		out.Write(append(e.line, '\n'))
	}
	for _, e := range second {
		out.Write(append(e.line, '\n'))
	}
	return out.Bytes()
}
