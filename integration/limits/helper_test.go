package limits

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func TestMain(m *testing.M) { testkit.Main(m) }

//go:embed testdata
var testdata embed.FS

func source(t *testing.T, name string) string {
	t.Helper()
	return testkit.Source(t, testdata, name)
}

// script runs a program of testdata as a file.
func script(t *testing.T, who testkit.Who, name, flags string, args ...string) testkit.Output {
	t.Helper()
	if filepath.Ext(name) == ".py" {
		testkit.Requires(t, "python3")
	}
	path := filepath.Join(testkit.Dir(t), name)
	if err := os.WriteFile(path, []byte(source(t, name)), 0o644); err != nil {
		t.Fatal(err)
	}
	list := append(strings.Fields(flags), path)
	return testkit.Run(t, testkit.Opts{Who: who}, append(list, args...)...)
}

// hog runs testdata/hog.c.
func hog(t *testing.T, who testkit.Who, flags, args string) testkit.Output {
	t.Helper()
	return testkit.RunC(t, testkit.Opts{Who: who}, strings.Fields(flags), source(t, "hog.c"), strings.Fields(args)...)
}

// startHog starts it and returns at once.
func startHog(t *testing.T, who testkit.Who, flags, args string) *testkit.Process {
	t.Helper()
	list := append([]string{"-v", testkit.C(t, source(t, "hog.c")) + ":" + testkit.Inside}, strings.Fields(flags)...)
	list = append(list, "--", testkit.Inside)
	return testkit.Start(t, testkit.Opts{Who: who}, append(list, strings.Fields(args)...)...)
}

// ended checks how a run ended and what it printed.
func ended(t *testing.T, o testkit.Output, outcome result.Outcome, exit int, stdout string) {
	t.Helper()
	if o.Result.Outcome != outcome || o.Exit != exit || o.Result.ExitCode != exit || o.Stdout != stdout {
		t.Errorf("%s, exit %d (result %d), stdout %q; want %s, exit %d, %q\nstderr: %s",
			o.Result.Outcome, o.Exit, o.Result.ExitCode, o.Stdout, outcome, exit, stdout, o.Stderr)
	}
}

// held checks one limit of the result.
func held(t *testing.T, o testkit.Output, name string, value int64, by result.Enforcer) {
	t.Helper()
	if l := o.Result.Limits[name]; l.Value != value || l.EnforcedBy != by {
		t.Errorf("limit %s is %d by %s, want %d by %s", name, l.Value, l.EnforcedBy, value, by)
	}
}

// by is who holds a limit for this identity on this host.
func by(who testkit.Who, otherwise result.Enforcer) result.Enforcer {
	if !who.Limited() {
		return otherwise
	}
	if kernelV2() {
		return result.ByCgroup2
	}
	return result.ByCgroup1
}

func kernelV2() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}

// file picks the name of a control file on v1 or v2.
func file(v1, v2 string) string {
	if kernelV2() {
		return v2
	}
	return v1
}

// kernelSays checks what was read back of the sandbox's own cgroup.
func kernelSays(t *testing.T, who testkit.Who, o testkit.Output, name, want string) {
	t.Helper()
	if !who.Limited() {
		return
	}
	for _, l := range o.Result.Layers {
		if l.Name == "cgroup" {
			if got := l.ReadBack[name]; got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
			return
		}
	}
	t.Error("no cgroup layer in the result")
}

// nobodyLeft checks that no process carries the marker.
func nobodyLeft(t *testing.T, marker string) {
	t.Helper()
	if left := testkit.Processes(marker); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

// mark is a word for the command lines of one run.
func mark(t *testing.T) string {
	return fmt.Sprintf("mark-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}
