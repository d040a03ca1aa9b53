package compat

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// program is one of the compatibility set: a source in testdata/set, and all
// that it prints under the default policy and limits.
type program struct {
	file  string // without try_
	needs string // what the host must have, for testkit.Requires
	flags string // beyond the defaults; docs/COMPATIBILITY.md has them
	want  string // the whole of stdout
	// start, when there is one, is what comes after the flags instead of the file.
	start func(t *testing.T, who testkit.Who, file string) []string
}

// set is all of it, by the tests that run it.
var set = map[string][]program{
	"TestPython":     python,
	"TestNode":       node,
	"TestTools":      tools,
	"TestCompilers":  compilers,
	"TestJava":       java,
	"TestScripts":    scripts,
	"TestGraphics":   graphics,
	"TestPostgreSQL": {postgresql},
}

// each runs programs as root and as an ordinary user. Time is the one default
// that is not left: a machine that is busy or emulated is no failure.
func each(t *testing.T, programs []program) {
	for _, p := range programs {
		t.Run(p.file, func(t *testing.T) {
			testkit.Requires(t, strings.Fields(p.needs)...)
			testkit.Each(t, func(t *testing.T, who testkit.Who) { p.printed(t, p.run(t, who)) })
		})
	}
}

// run starts the program; more are flags after its own.
func (p program) run(t *testing.T, who testkit.Who, more ...string) testkit.Output {
	t.Helper()
	list := append([]string{"--timeout", "90s"}, strings.Fields(p.flags)...)
	list = append(list, more...)
	file := onHost(t, "set/try_"+p.file)
	if p.start == nil {
		list = append(list, file)
	} else {
		list = append(list, p.start(t, who, file)...)
	}
	return testkit.Run(t, testkit.Opts{Who: who, Env: []string{path()}}, list...)
}

// path is the caller's PATH: the system's directories and that of Go.
func path() string {
	path := "PATH=/usr/local/bin:/usr/bin:/bin"
	if file, err := exec.LookPath("go"); err == nil {
		path += ":" + filepath.Dir(file)
	}
	return path
}

// printed wants exactly what the program prints, and exit code 0.
func (p program) printed(t *testing.T, o testkit.Output) {
	t.Helper()
	if o.Stdout != p.want || o.Exit != 0 || o.Result.Outcome != result.Exited {
		t.Errorf("exit %d, outcome %q, stdout\n%s\nwant\n%s\nstderr: %s", o.Exit, o.Result.Outcome, o.Stdout, p.want, o.Stderr)
	}
}

// named is one of the programs.
func named(t *testing.T, programs []program, file string) program {
	t.Helper()
	for _, p := range programs {
		if p.file == file {
			return p
		}
	}
	t.Fatalf("no program %s", file)
	return program{}
}

// TestDocument: docs/COMPATIBILITY.md has a row for each program, with the test
// that runs it and the flags that it has there, and for no other.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs/COMPATIBILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if c := strings.Split(line, "|"); len(c) == 5 && strings.Contains(c[3], "`Test") {
			rows[strings.TrimSpace(c[3])] = strings.TrimSpace(c[2])
		}
	}
	for test, programs := range set {
		for _, p := range programs {
			key, want := "`"+test+"/"+p.file+"`", "works"
			if p.flags != "" {
				want = "with `" + p.flags + "`"
			}
			if got := rows[key]; got != want && !strings.HasPrefix(got, want+":") {
				t.Errorf("%s: docs/COMPATIBILITY.md says %q, want %q", key, got, want)
			}
			delete(rows, key)
		}
	}
	for _, c := range refused {
		key := "`TestRefused/" + c.name + "`"
		if !strings.HasPrefix(rows[key], "does not: ") {
			t.Errorf("%s: docs/COMPATIBILITY.md says %q, want that it does not", key, rows[key])
		}
		delete(rows, key)
	}
	delete(rows, "`TestChromiumOwnSandbox`")
	for key := range rows {
		t.Errorf("docs/COMPATIBILITY.md has %s, which is no program of a test", key)
	}
	files, err := filepath.Glob("testdata/set/try_*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimPrefix(filepath.Base(f), "try_"); !strings.Contains(string(text), "/"+name+"`") {
			t.Errorf("%s is run by no test", f)
		}
	}
}
