package doctor

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
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

// report is what doctor finds there.
func (p place) report(t *testing.T) doctor.Report {
	t.Helper()
	return agree.Report(t, p.do)
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

// agrees runs a program there: see agree.Run.
func (p place) agrees(t *testing.T, r doctor.Report) {
	t.Helper()
	agree.Run(t, p.do, r)
}

func number(n int) string { return strconv.Itoa(n) }
