package egress

import (
	"embed"
	"encoding/json"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

//go:embed testdata
var testdata embed.FS

var noLog = log.New(io.Discard, "", 0)

// allow are the flags for hosts.
func allow(hosts ...string) []string {
	var list []string
	for _, h := range hosts {
		list = append(list, "--allow-host", h)
	}
	return list
}

// python runs a program of testdata with Debian's Python.
func (w *world) python(t *testing.T, who testkit.Who, name string, flags []string, args ...string) testkit.Output {
	t.Helper()
	return testkit.Run(t, testkit.Opts{Who: who}, w.pythonArgs(t, name, flags, args...)...)
}

// pythonArgs are the words after run.
func (w *world) pythonArgs(t *testing.T, name string, flags []string, args ...string) []string {
	t.Helper()
	testkit.Requires(t, "/usr/bin/python3")
	path := filepath.Join(testkit.Dir(t), name)
	if err := os.WriteFile(path, []byte(testkit.Source(t, testdata, name)), 0o644); err != nil {
		t.Fatal(err)
	}
	list := slices.Concat(flags, []string{"-v", path + ":/opt/" + name})
	if !slices.Contains(flags, "--timeout") {
		list = append(list, "--timeout", "100s") // an emulated machine takes seconds for what takes none
	}
	if w != nil {
		list = append(list, w.ca.flags()...)
	}
	return slices.Concat(list, []string{"--", "/usr/bin/python3", "/opt/" + name}, args)
}

// outOfTime runs conn.py up to a time limit, and once more with a longer one where it
// had no connection by then: a slow machine may need all of a short one to come so far.
func (w *world) outOfTime(t *testing.T, who testkit.Who, limit time.Duration, flags []string, args ...string) (o testkit.Output) {
	t.Helper()
	for _, limit := range []time.Duration{limit, 10 * limit} {
		o = w.python(t, who, "conn.py", append(slices.Clone(flags), "--timeout", limit.String()), args...)
		if o.Result.Network != nil && len(o.Result.Network.Connections) > 0 {
			break
		}
	}
	return o
}

// printed wants exit code 0 and the whole of stdout.
func printed(t *testing.T, o testkit.Output, want string) {
	t.Helper()
	if o.Exit != 0 || o.Stdout != want {
		t.Errorf("exit %d, stdout %q, want %q\nstderr: %s\nnetwork: %s", o.Exit, o.Stdout, want, o.Stderr, network(o))
	}
}

func network(o testkit.Output) string {
	text, _ := json.Marshal(o.Result.Network)
	return string(text)
}

// connections wants exactly these, in any order, each as "HOST:PORT ADDRESS
// VERDICT", the same one written once.
func connections(t *testing.T, o testkit.Output, want ...string) {
	t.Helper()
	if o.Result.Network == nil {
		t.Fatalf("the result has no network\nexit %d\nstderr: %s", o.Exit, o.Stderr)
	}
	var got []string
	for _, c := range o.Result.Network.Connections {
		got = append(got, strings.Join([]string{hostPort(c.Host, c.Port), c.Address, string(c.Verdict)}, " "))
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("connections %q, want %q\nnetwork: %s\nstderr: %s", got, want, network(o), o.Stderr)
	}
}

// refused wants exactly these hosts refused, each as "HOST:PORT REASON", without
// a port where there was none.
func refused(t *testing.T, o testkit.Output, want ...string) {
	t.Helper()
	var got []string
	if o.Result.Network != nil {
		for _, r := range o.Result.Network.Refused {
			got = append(got, hostPort(r.Host, r.Port)+" "+r.Reason)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

func hostPort(host string, port uint16) string {
	if port == 0 {
		return host
	}
	return host + ":" + itoa(int(port))
}

// one is the only connection of a run.
func one(t *testing.T, o testkit.Output) result.Connection {
	t.Helper()
	if o.Result.Network == nil || len(o.Result.Network.Connections) != 1 {
		t.Fatalf("not one connection: %s\nexit %d\nstdout: %s\nstderr: %s", network(o), o.Exit, o.Stdout, o.Stderr)
	}
	return o.Result.Network.Connections[0]
}
