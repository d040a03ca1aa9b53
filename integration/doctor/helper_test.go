package doctor

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/schema"
	"sandglass/pkg/doctor"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// place is a host: the command that everything on it begins with, none for this
// host as it is, and who asks there.
type place struct {
	who    testkit.Who
	prefix []string
	path   string // PATH, "" for the usual one
}

// rules is this host below a seccomp filter, see testdata/host.c.
func rules(t *testing.T, who testkit.Who, list ...string) place {
	t.Helper()
	text, err := os.ReadFile("testdata/host.c")
	if err != nil {
		t.Fatal(err)
	}
	return place{who: who, prefix: append(append([]string{testkit.C(t, string(text))}, list...), "--")}
}

// script is this host after a shell script of root's in a mount namespace of its
// own; who asks comes to it after that.
func script(t *testing.T, who testkit.Who, text string) place {
	t.Helper()
	testkit.Requires(t, "root", "unshare", "setpriv")
	become := `exec "$@"`
	if !who.IsRoot() {
		become = `exec setpriv --reuid ` + number(who.UID) + ` --regid ` + number(who.GID) + ` --clear-groups "$@"`
	}
	return place{who: testkit.AsRoot(t), prefix: []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec", text + "\n" + become, "sh"}}
}

// do runs the binary there.
func (p place) do(t *testing.T, verb string, args ...string) testkit.Output {
	t.Helper()
	o := testkit.Opts{Who: p.who, Verb: verb, Setup: func(cmd *exec.Cmd) {
		if len(p.prefix) == 0 {
			return
		}
		path, err := exec.LookPath(p.prefix[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = path, append(slices.Clone(p.prefix), cmd.Args...)
	}}
	if p.path != "" {
		o.Env = []string{"PATH=" + p.path}
	}
	return testkit.Run(t, o, args...)
}

// report is what doctor finds there. Its exit code must be the one of the
// report, the report must be as the schema has it, and nothing else is said.
func (p place) report(t *testing.T) doctor.Report {
	t.Helper()
	o := p.do(t, "doctor", "--json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(o.Stdout), &r); err != nil || o.Stderr != "" {
		t.Fatalf("exit %d, %v\n%s%s", o.Exit, err, o.Stdout, o.Stderr)
	}
	s := schema.Load(t, filepath.Join(testkit.Root(t), "docs/doctor.schema.json"))
	for _, bad := range s.Validate([]byte(o.Stdout), "report") {
		t.Error(bad)
	}
	if left := testkit.CgroupsLeft(t, o.PID); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	want := 125
	if r.Run.State == doctor.Works {
		want = 0
	}
	if o.Exit != want {
		t.Errorf("exit %d of doctor, want %d: %s", o.Exit, want, r.Run.State)
	}
	for i := range r.Layers {
		r.Layers[i].Cause = plain(r.Layers[i].Cause)
	}
	r.Run.Error = plain(r.Run.Error)
	return r
}

// plain takes the parts of a text away that differ from run to run.
func plain(text string) string {
	return regexp.MustCompile(`sandglass-[0-9]+-[0-9]+-[0-9a-z]+`).ReplaceAllString(text, "sandglass-ID")
}

func layer(t *testing.T, r doctor.Report, name string) doctor.Layer {
	t.Helper()
	i := slices.IndexFunc(r.Layers, func(l doctor.Layer) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no layer %s", name)
	}
	return r.Layers[i]
}

// ownID is the layer of an ordinary user's own ids.
const ownID = "own host id"

// want is what must be said of some layers; all others must be as they are on
// base, to the letter.
type want map[string]doctor.Layer

func (w want) compare(t *testing.T, base, got doctor.Report) {
	t.Helper()
	if len(base.Layers) != len(got.Layers) {
		t.Errorf("%d layers, %d without what is lacking", len(got.Layers), len(base.Layers))
	}
	for _, l := range got.Layers {
		expect, special := w[l.Name]
		if l.Name == ownID && !special {
			continue // it depends on how the place was made, and the user has no range
		}
		if !special {
			expect = layer(t, base, l.Name)
		}
		expect.Name = l.Name
		if l.State != expect.State || l.Cause != expect.Cause || l.Detail != expect.Detail {
			t.Errorf("%s:\n got %q %q %q\nwant %q %q %q", l.Name, l.State, l.Detail, l.Cause, expect.State, expect.Detail, expect.Cause)
		}
		if l.State == doctor.DoesNot && len(l.Remedies) == 0 {
			t.Errorf("%s: no remedy", l.Name)
		}
	}
}

// agrees runs a program there: it starts, starts with the flags that doctor
// names, or is refused with doctor's own words.
func (p place) agrees(t *testing.T, r doctor.Report) {
	t.Helper()
	bare := p.do(t, "run", "--", "true")
	if r.Run.State == doctor.Works {
		if bare.Exit != 0 {
			t.Errorf("a run starts, says doctor; exit %d: %s", bare.Exit, bare.Stderr)
		}
		return
	}
	if bare.Exit != 125 || bare.Stdout != "" {
		t.Errorf("exit %d, stdout %q of a run that does not start", bare.Exit, bare.Stdout)
	}
	if r.Run.State == doctor.DoesNot && r.Run.Flags != "" {
		bare = p.do(t, "run", append(strings.Fields(r.Run.Flags), "--", "true")...)
	} else if r.Run.State == doctor.Less {
		if o := p.do(t, "run", append(strings.Fields(r.Run.Flags), "--", "true")...); o.Exit != 0 {
			t.Errorf("with %s: exit %d: %s", r.Run.Flags, o.Exit, o.Stderr)
		}
	}
	lines := strings.Split(strings.TrimSuffix(plain(bare.Stderr), "\n"), "\n")
	said := []string{"sandglass: error: " + r.Run.Error}
	for _, h := range r.Run.Hints {
		said = append(said, "hint: "+h)
	}
	if len(lines) > 1 {
		for i := range lines[1:] { // run puts its own command line for the example
			lines[i+1] = strings.Replace(lines[i+1], "sandglass run -- true", "sandglass run script.py", 1)
		}
	}
	if !slices.Equal(lines, said) {
		t.Errorf("run says\n%s\ndoctor says\n%s", strings.Join(lines, "\n"), strings.Join(said, "\n"))
	}
}

func number(n int) string { return strconv.Itoa(n) }
