package leftovers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/boxinit"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"
)

// faultFile names the step that fails. It lies in the private /run of Quiet.
const faultFile = "/run/fault"

// faulty is sandglass with a fault after any step of init's, in any call of the
// program's process before its execve, or, as "clone:NAME", of init's. It is built for the test: what is
// released has no such hook.
func faulty(t *testing.T) string {
	return testkit.Mutant(t,
		testkit.Edit{File: "pkg/boxinit/main.go", Old: "		if err := s.Do(b); err != nil {\n",
			New: "		err := s.Do(b)\n		if s.Name == sys.Fault() {\n			err = unix.EIO\n		}\n		if err != nil {\n"},
		testkit.Edit{File: "internal/sys/sys.go", Old: "	k := Call{Name: name, Nr: nr}\n",
			New: "	k := Call{Name: name, Nr: nr}\n	if name == fault {\n		k.Nr = 0xffff\n	}\n"},
		testkit.Edit{File: "internal/sys/sys.go", Old: "// Calls collects a child's",
			New: "var fault = func() string {\n	var b [64]byte\n	fd, err := unix.Open(\"" + faultFile + "\", unix.O_RDONLY|unix.O_CLOEXEC, 0)\n	if err != nil {\n		return \"\"\n	}\n" +
				"	n, _ := unix.Read(fd, b[:])\n	unix.Close(fd)\n	name := string(b[:max(n, 0)])\n" +
				"	clone := len(name) > 6 && name[:6] == \"clone:\"\n	if clone == (unix.Getpid() == 1) {\n		return \"\"\n	}\n" +
				"	if clone {\n		return name[6:]\n	}\n	return name\n}()\n\nfunc Fault() string { return fault }\n\n// Calls collects a child's"},
	)
}

// cloneCalls are what init's process does before its own execve.
var cloneCalls = []string{
	"new session", "groups", "group", "keep capabilities", "user", "capabilities", "ambient capabilities", "close stdio",
	"control socket", "seal descriptors", "default signals", "unblock signals",
}

// A step that fails leaves nothing, runs nothing, and is named.
func TestNothingIsLeftAfterAFaultAtAnyStep(t *testing.T) {
	if !testkit.QuietWith(t, func() string { return faulty(t) }) {
		return
	}
	var steps []string
	for _, s := range boxinit.Steps() {
		steps = append(steps, s.Name)
	}
	// Past this step the program runs: its output may be there, its verdict not.
	started := slices.Index(steps, "start program")
	if started < 0 {
		t.Fatalf("no start among %q", steps)
	}
	calls := boxinit.Child(&wire.Config{Tasks: []int32{5}, CgroupNS: true, Rlimits: []wire.Rlimit{{Resource: 4}}, Seccomp: make([]byte, 8)}, 0, 0).Names()
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		before := look(t)
		for i, step := range append(slices.Clone(steps), calls...) {
			if step == "join cgroup" && (!who.Limited() || testkit.CgroupVersion("memory") == "cgroup2") {
				continue // then there is nothing to join
			}
			fault(t, step)
			o := testkit.Run(t, testkit.Opts{Who: who}, "--", "sh", "-c", "echo ran; "+busy+"sleep 1000")
			fault(t, "")
			if o.Exit != 125 || o.Result.Outcome != result.Failed {
				t.Errorf("%s: exit %d, outcome %q, %q", step, o.Exit, o.Result.Outcome, o.Stderr)
			}
			early := i < started || i >= len(steps)
			if early && (strings.Contains(o.Stdout, "ran") || !strings.Contains(o.Stderr, step)) {
				t.Errorf("%s: stdout %q, stderr %q: it must be named, and nothing run", step, o.Stdout, o.Stderr)
			}
			nothing(t, before, o.PID)
		}
		for _, name := range cloneCalls {
			if name == "groups" && !who.IsRoot() {
				continue // an ordinary user's cannot be dropped
			}
			fault(t, "clone:"+name)
			o := testkit.Run(t, testkit.Opts{Who: who}, "--", "sh", "-c", "echo ran; sleep 1000")
			fault(t, "")
			if o.Exit != 125 || o.Result.Outcome != result.Failed || o.Stdout != "" {
				t.Errorf("clone: %s: exit %d, outcome %q, %q", name, o.Exit, o.Result.Outcome, o.Stdout)
			}
			nothing(t, before, o.PID)
		}
		if o := testkit.Run(t, testkit.Opts{Who: who}, "--", "true"); o.Exit != 0 {
			t.Errorf("without a fault: exit %d, %s", o.Exit, o.Stderr)
		}
	})
}

// fault arms one, or none.
func fault(t *testing.T, step string) {
	t.Helper()
	if step == "" {
		if err := os.Remove(faultFile); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(faultFile, []byte(step), 0o644); err != nil {
		t.Fatal(err)
	}
}
