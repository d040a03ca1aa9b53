package boxinit

import (
	"flag"
	"os"
	"strings"
	"testing"

	"sandglass/pkg/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The order is the security of it: a step that moves must be seen to move.
func TestOrder(t *testing.T) {
	var b strings.Builder
	b.WriteString("init:\n")
	for _, s := range Steps() {
		b.WriteString("  " + s.Name + "\n")
	}
	b.WriteString("the program's process, between clone and execve:\n")
	cfg := &wire.Config{Tasks: []int32{5}, CgroupNS: true, Terminal: true, CPUs: []byte{1}, SmallPages: true, Rlimits: []wire.Rlimit{{Resource: 4}}, Seccomp: make([]byte, 8)}
	for _, name := range Child(cfg, 0, 0).Names() {
		b.WriteString("  " + name + "\n")
	}
	b.WriteString("  execve\n")
	const path = "testdata/order.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the order has changed; if that is meant: go test ./pkg/boxinit -run TestOrder -update\ngot:\n%s\nwant:\n%s", b.String(), want)
	}
}

// What the order must keep, whatever else moves.
func TestOrderKeeps(t *testing.T) {
	var steps []string
	for _, s := range Steps() {
		steps = append(steps, s.Name)
	}
	cfg := &wire.Config{Tasks: []int32{5}, CgroupNS: true, Terminal: true, CPUs: []byte{1}, SmallPages: true, Rlimits: []wire.Rlimit{{Resource: 4}}, Seccomp: make([]byte, 8)}
	child := Child(cfg, 0, 0).Names()
	for _, c := range []struct {
		list          []string
		before, after string
	}{
		{steps, "take the ids", "hide init"}, // the change of ids makes the kernel decide anew who may look
		{steps, "take the ids", "mounts"},    // what is made belongs to whoever makes it
		{steps, "hide init", "start program"},
		{steps, "ignore signals to init", "start program"},
		{steps, "die with the supervisor", "start program"},
		{steps, "mounts", "landlock ruleset"},
		{steps, "landlock ruleset", "quotas"}, // the kernel counts a detached mount as a namespace
		{steps, "quotas", "start program"},
		{steps, "quotas", "working directory"}, // its descriptor is the host's
		{steps, "mounts", "working directory"}, // the directory is inside, not the host's (CVE-2024-21626)
		{steps, "working directory", "start program"},
		{steps, "mounts", "terminal"}, // of the sandbox's own devpts, not the host's (CVE-2017-5226)
		{steps, "terminal", "start program"},
		{child, "new session", "controlling terminal"}, // else it would be another session's
		{child, "controlling terminal", "capabilities"},
		{steps, "start program", "drop capabilities of init"},
		{steps, "drop capabilities of init", "seccomp of init"},
		{child, "join cgroup", "cpu affinity"},     // joining a cpuset undoes it
		{child, "join cgroup", "cgroup namespace"}, // the namespace's root is where the process is
		{child, "cgroup namespace", "capabilities"},
		{child, "bounding set", "capabilities"},
		{child, "capabilities", "no_new_privs"},
		{child, "no_new_privs", "seccomp"},
		{child, "close descriptors", "seccomp"},
		{child, "personality", "seccomp"}, // a filter may refuse the call
	} {
		i, j := index(c.list, c.before), index(c.list, c.after)
		if i < 0 || j < 0 || i >= j {
			t.Errorf("%q must come before %q: %q", c.before, c.after, c.list)
		}
	}
	if last := child[len(child)-1]; last != "seccomp" {
		t.Errorf("%q comes after the filter", last)
	}
	if last := steps[len(steps)-1]; last != "seccomp of init" {
		t.Errorf("%q comes after init's filter", last)
	}
}

func index(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}
