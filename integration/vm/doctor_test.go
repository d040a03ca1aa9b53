package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/doctor"
)

// What doctor says of each layer is known for each kind of machine.
func TestDoctorTable(t *testing.T) {
	name, who := "", testkit.Who{}
	if testkit.CgroupVersion("pids") == "cgroup2" && testkit.CgroupVersion("memory") == "" {
		name, who = "v2-"+release(t)+"-no-memory-root", testkit.AsRoot(t)
	} else {
		name, who = place(t)
	}
	golden(t, filepath.Join("testdata", "doctor-"+name+".golden"), examined(t, who))
}

func examined(t *testing.T, who testkit.Who) string {
	t.Helper()
	o := testkit.Run(t, testkit.Opts{Who: who, Verb: "doctor", Dir: testkit.Dir(t)}, "--json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(o.Stdout), &r); err != nil || o.Stderr != "" {
		t.Fatalf("%v\n%s%s", err, o.Stdout, o.Stderr)
	}
	v1 := r.Host.Cgroup != "v2" // any host's: what depends on its kernel and disks is left out
	var b strings.Builder
	fmt.Fprintf(&b, "exit: %d\ncgroup: %s\nrun: %s\n", o.Exit, strings.Replace(r.Host.Cgroup, "hybrid", "v1", 1), r.Run.State)
	for _, text := range append([]string{r.Run.Flags, r.Run.Error}, r.Run.Hints...) {
		if text != "" {
			fmt.Fprintf(&b, "\t%s\n", steady(text, v1))
		}
	}
	for _, l := range r.Layers {
		if v1 && (l.Name == "landlock" || l.Name == "id-mapped mounts" || l.Name == "io limit") {
			continue
		}
		if l.Name == "own host id" { // a package of the host's that built the machine
			continue
		}
		fmt.Fprintf(&b, "layer: %s: %s\n", l.Name, l.State)
		for _, text := range append([]string{l.Detail, l.Cause}, l.Remedies...) {
			if text != "" {
				fmt.Fprintf(&b, "\t%s\n", steady(text, v1))
			}
		}
	}
	return b.String()
}

// steady takes away what differs between two runs or two hosts of one kind.
func steady(text string, v1 bool) string {
	text = regexp.MustCompile(`run-[^ /]*\.scope`).ReplaceAllString(variable.Replace(text), "NAME.scope")
	text = regexp.MustCompile(`/tmp/sandglass-test-[0-9]+`).ReplaceAllString(text, "DIR")
	if v1 {
		text = regexp.MustCompile(`/sys/fs/cgroup/[^ :]*`).ReplaceAllString(text, "own group")
	}
	return text
}
