package escape

import (
	"fmt"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// A fork bomb meets EAGAIN at the limit. The limit counts the program's own
// processes: the one that tries, its child that forks, and the children.
func TestForkBombIsStopped(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, []string{"--pids-limit", "20"}, trySource, "forks:2000"))
		if want := "forked 18\nforks:2000 EAGAIN\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
}

// Memory counts for all processes together: no one of them has too much.
func TestMemoryOfTheTreeIsStopped(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		script := "for i in 1 2 3 4 5 6; do " + testkit.Inside + " & done; wait; echo survived"
		o := testkit.Run(t, testkit.Opts{Who: who}, "-v", testkit.C(t, holdSource)+":"+testkit.Inside, "-m", "64m", "--", "sh", "-c", script)
		if o.Exit != result.ExitMemory || o.Result.Outcome != result.Memory || strings.Contains(o.Stdout, "survived") {
			t.Errorf("exit %d, outcome %q, %q", o.Exit, o.Result.Outcome, o.Stdout)
		}
		want := map[bool][]result.Enforcer{true: {result.ByCgroup1, result.ByCgroup2}, false: {result.ByWatchdog}}[who.Limited()]
		if by := o.Result.Limits["memory"].EnforcedBy; by != want[0] && by != want[len(want)-1] {
			t.Errorf("memory is held by %q, want one of %q", by, want)
		}
	})
}

// holdSource takes 24 MiB and keeps them.
const holdSource = `#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) { char *p = malloc(24 << 20); memset(p, 1, 24 << 20); pause(); return p[0]; }
`

// Without a limit by cgroups an ordinary user is refused, unless the caller
// names what may be weaker. Nothing degrades in silence.
func TestNothingDegradesInSilence(t *testing.T) {
	who := testkit.AsUser(t)
	if who.Limited() {
		testkit.Skip(t, "user without a delegated cgroup", "one with")
	}
	for _, allow := range []string{"", "memory", "memory,cpu", "cpu,pids", "pids"} {
		var flags []string
		if allow != "" {
			flags = []string{"--allow-degraded", allow}
		}
		o := testkit.Run(t, testkit.Opts{Who: who, Strict: true}, append(flags, "--", "true")...)
		if o.Exit != 125 || o.Result.Outcome != result.Refused || !strings.Contains(o.Stderr, "hint: ") {
			t.Errorf("--allow-degraded %s: exit %d, outcome %q, %q", allow, o.Exit, o.Result.Outcome, o.Stderr)
		}
	}
	o := must(t, testkit.Run(t, testkit.Opts{Who: who, Strict: true}, "--allow-degraded", "memory,cpu,pids", "--", "true"))
	for name, want := range map[string]result.Enforcer{"memory": result.ByWatchdog, "pids": result.ByRlimit, "cpus": result.ByNone} {
		if by := o.Result.Limits[name].EnforcedBy; by != want {
			t.Errorf("%s is held by %q, want %q", name, by, want)
		}
	}
}

// Two sandboxes of one caller share nothing that one can write and the other
// can see.
func TestNeighboursAreApart(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		script := "echo mine >/tmp/mark; echo mine >/dev/shm/mark; echo mine >/work/mark; echo mine >/home/sandbox/mark; ipcmk -M 4096 >/dev/null; "
		first := hold(t, testkit.Opts{Who: who}, "true")
		second := must(t, testkit.Sh(t, who, script+"ls /tmp /dev/shm /work /home/sandbox | grep -c mark"))
		if second.Stdout != "4\n" {
			t.Fatalf("%q, want 4", second.Stdout)
		}
		third := must(t, testkit.Sh(t, who, "ls -A /tmp /dev/shm /work /home/sandbox | grep mark; tail -n +2 /proc/sysvipc/shm; ls -d /proc/[0-9]* | wc -l"))
		var n int
		if _, err := fmt.Sscanf(third.Stdout, "%d\n", &n); err != nil || n > 3 {
			t.Errorf("%q: a neighbour's things show", third.Stdout)
		}
		theirs := namespaces(third.Result.Layers)
		for ns, inode := range namespaces(first.layers(t)) {
			if theirs[ns] == "" || theirs[ns] == inode {
				t.Errorf("both are in the %s namespace %q", ns, inode)
			}
		}
		if len(theirs) != 6 {
			t.Errorf("namespaces read back: %v, want 6", theirs)
		}
	})
}

// namespaces are the inodes that were read back.
func namespaces(layers []result.Layer) map[string]string {
	list := map[string]string{}
	for _, l := range layers {
		for key, value := range l.ReadBack {
			if strings.HasPrefix(value, key+":[") {
				list[key] = value
			}
		}
	}
	return list
}

// layers lets the program end and returns the layers that were read back.
func (l *live) layers(t *testing.T) []result.Layer {
	t.Helper()
	l.release()
	return must(t, l.Wait()).Result.Layers
}
