// Package agree holds a host to one story: what doctor says there is what a run
// is told, to the letter. It is beside testkit because what doctor links is
// tested with that.
package agree

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/schema"
	"sandglass/pkg/doctor"
)

// Host runs the binary there, with a command and its flags.
type Host func(t *testing.T, verb string, args ...string) testkit.Output

// As is this host, asked by somebody. No flags are added.
func As(who testkit.Who) Host {
	return func(t *testing.T, verb string, args ...string) testkit.Output {
		t.Helper()
		return testkit.Run(t, testkit.Opts{Who: who, Verb: verb, Strict: true}, args...)
	}
}

// Report is what doctor finds there. Its exit code must be the one of the
// report, the report must be as the schema has it, and nothing else is said.
func Report(t *testing.T, h Host) doctor.Report {
	t.Helper()
	o := h(t, "doctor", "--json")
	r := Parse(t, o)
	if left := testkit.CgroupsLeft(t, o.PID); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	return r
}

// Parse is Report for a doctor that has run already.
func Parse(t *testing.T, o testkit.Output) doctor.Report {
	t.Helper()
	var r doctor.Report
	if err := json.Unmarshal([]byte(o.Stdout), &r); err != nil || o.Stderr != "" {
		t.Fatalf("exit %d, %v\n%s%s", o.Exit, err, o.Stdout, o.Stderr)
	}
	s := schema.Load(t, filepath.Join(testkit.Root(t), "docs/doctor.schema.json"))
	for _, bad := range s.Validate([]byte(o.Stdout), "report") {
		t.Error(bad)
	}
	want := 125
	if r.Run.State == doctor.Works {
		want = 0
	}
	if o.Exit != want {
		t.Errorf("exit %d of doctor, want %d: %s", o.Exit, want, r.Run.State)
	}
	for i := range r.Layers {
		r.Layers[i].Cause = Plain(r.Layers[i].Cause)
	}
	r.Run.Error = Plain(r.Run.Error)
	return r
}

// Plain takes the parts of a text away that differ from run to run.
func Plain(text string) string {
	text = regexp.MustCompile(`process \d+ is \d+ there`).ReplaceAllString(text, "process N is M there")
	return regexp.MustCompile(`sandglass-[0-9]+-[0-9]+-[0-9a-z]+`).ReplaceAllString(text, "sandglass-ID")
}

// Run starts a program there: it starts, starts with the flags that doctor
// names, or is refused with doctor's own words.
func Run(t *testing.T, h Host, r doctor.Report) {
	t.Helper()
	bare := h(t, "run", "--", "true")
	flags := append(strings.Fields(r.Run.Flags), "--", "true")
	switch {
	case r.Run.State == doctor.Works:
		if bare.Exit != 0 {
			t.Errorf("a run starts, says doctor; exit %d: %s", bare.Exit, bare.Stderr)
		}
		return
	case bare.Exit != 125 || bare.Stdout != "":
		t.Errorf("exit %d, stdout %q of a run that does not start", bare.Exit, bare.Stdout)
	case r.Run.State == doctor.Less:
		if o := h(t, "run", flags...); o.Exit != 0 {
			t.Errorf("with %s: exit %d: %s", r.Run.Flags, o.Exit, o.Stderr)
		}
	case r.Run.Flags != "": // what no flag mends is what is told
		bare = h(t, "run", flags...)
	}
	Words(t, bare.Stderr, r)
}

// Words compares a refusal with doctor's.
func Words(t *testing.T, stderr string, r doctor.Report) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(Plain(stderr), "\n"), "\n")
	said := []string{"sandglass: error: " + r.Run.Error}
	for _, h := range r.Run.Hints {
		said = append(said, "hint: "+h)
	}
	for i, line := range lines { // run puts its own command line for the example
		if i > 0 {
			lines[i] = regexp.MustCompile(`(sandglass run(?: --cgroup-parent \S+)?)(?: --timeout 100s)? -- (?:true|echo ran)`).ReplaceAllString(line, "$1 script.py")
		}
	}
	if !slices.Equal(lines, said) {
		t.Errorf("run says\n%s\ndoctor says\n%s", strings.Join(lines, "\n"), strings.Join(said, "\n"))
	}
}
