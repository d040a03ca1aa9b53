package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	runplan "sandglass/pkg/plan"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var update = flag.Bool("update", false, "write the golden file of this machine anew")

// place names the kind of machine that this is: its tree, and on v2 the kernel
// and who asks.
func place(t *testing.T) (string, testkit.Who) {
	t.Helper()
	who := testkit.AsRoot
	name := "root"
	if os.Geteuid() != 0 {
		who, name = testkit.AsUser, "user"
	}
	w := who(t)
	if testkit.CgroupVersion("memory") != "cgroup2" {
		testkit.Requires(t, "cgroup1-memory", "cgroup1-pids", "cgroup1-cpu")
		return "v1-" + name, w
	}
	if name == "user" && !w.Limited() {
		testkit.Skip(t, "a delegated cgroup", "none")
	}
	return "v2-" + release(t) + "-" + name, w
}

// release is the kernel's, without what its distribution adds.
func release(t *testing.T) string {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`^\d+\.\d+`).FindString(unix.ByteSliceToString(u.Release[:]))
}

// What a plan promises and what a run's result says is known for each kind of
// machine, limit by limit and layer by layer.
func TestResultTable(t *testing.T) {
	name, who := place(t)
	golden(t, filepath.Join("testdata", name+".golden"), planned(t, who)+ran(t, who))
}

// golden compares with the file of this kind of machine.
func golden(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil && !*update {
		testkit.Skip(t, "a kernel with a golden file", filepath.Base(path))
	}
	if *update {
		// A machine cannot write to this host: the command takes it from the output.
		fmt.Printf("%s%s %q\n", goldenMark, path, got)
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Log(err) // so does an ordinary user's
		}
		return
	}
	if got != string(want) {
		t.Errorf("%s differs: want\n%s\ngot\n%s", path, want, got)
	}
}

// variable is what differs between two runs or two hosts of one kind.
var variable = strings.NewReplacer("/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/", "SCOPE/")

func planned(t *testing.T, who testkit.Who) string {
	t.Helper()
	o := testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, "--json", "--", "true")
	var e runplan.Explanation
	if err := json.Unmarshal([]byte(o.Stdout), &e); err != nil {
		t.Fatalf("%v\n%s%s", err, o.Stdout, o.Stderr)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan: tree %s\n", strings.Replace(e.Cgroup.Tree, "hybrid", "v1", 1))
	for _, limit := range slices.Sorted(maps.Keys(e.Cgroup.Limits)) {
		text := e.Cgroup.Limits[limit]
		if strings.HasPrefix(e.Cgroup.Tree, "v2") { // on v1 it is the caller's own group, anywhere
			text = regexp.MustCompile(`run-[^ /]*\.scope`).ReplaceAllString(variable.Replace(text), "NAME.scope")
		} else if strings.HasPrefix(text, "/") {
			text = "own group"
		}
		fmt.Fprintf(&b, "plan: %s: %s\n", limit, text)
	}
	return b.String()
}

func ran(t *testing.T, who testkit.Who) string {
	t.Helper()
	o := testkit.Run(t, testkit.Opts{Who: who}, "--cpu-time", "5s", "--", "true")
	if o.Result.Outcome != result.Exited || o.Exit != 0 {
		t.Fatalf("exit %d: %s", o.Exit, o.Stderr)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o.Result.Limits)) {
		fmt.Fprintf(&b, "limit: %s: %s\n", name, o.Result.Limits[name].EnforcedBy)
	}
	v1 := testkit.CgroupVersion("memory") == "cgroup1" // any host's: what depends on its kernel is left out
	for _, l := range o.Result.Layers {
		if v1 && l.Name == "landlock" {
			continue
		}
		fmt.Fprintf(&b, "layer: %s: %s\n", l.Name, l.State)
		for _, key := range slices.Sorted(maps.Keys(l.ReadBack)) {
			if value := l.ReadBack[key]; key != "memory.swappiness" && key != "Groups" && !strings.Contains(value, "[") && !strings.Contains(value, "\t") { // inodes and ids
				fmt.Fprintf(&b, "\t%s = %s\n", key, value)
			}
		}
	}
	figures := map[string]int64{"memory_peak_bytes": o.Result.MemoryPeakBytes, "pids_peak": o.Result.PidsPeak}
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		known := "unknown"
		if figures[name] > 0 {
			known = "counted"
		}
		fmt.Fprintf(&b, "figure: %s: %s\n", name, known)
	}
	return b.String()
}
