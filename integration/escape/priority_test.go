package escape

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// through starts sandglass by way of another command, which changes what it
// will inherit.
func through(command ...string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		path, err := exec.LookPath(command[0])
		if err != nil {
			path = command[0]
		}
		cmd.Args = slices.Concat(command, []string{cmd.Path}, cmd.Args[1:])
		cmd.Path = path
	}
}

// niceness is this process's own.
func niceness(t *testing.T) int {
	t.Helper()
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the bare call's 40 to 1
	if err != nil {
		t.Fatal(err)
	}
	return 20 - n
}

// A caller that stands above other programs of the host does not lift the
// program there: real-time is outside every CPU limit.
func TestPriorityOfTheCallerIsNotInherited(t *testing.T) {
	testkit.Requires(t, "nice", "ionice", "chrt", "prlimit")
	who := testkit.AsRoot(t)
	const show = "nice; ionice; chrt -p $$ | sed 's/.*: //'; cat /proc/self/oom_score_adj; " +
		"grep -E '^Max (nice|realtime) priority' /proc/self/limits | tr -s ' '; chrt -f 1 true 2>/dev/null; echo $?"
	const ordinary = "\nnone: prio 0\nSCHED_OTHER\n0\n0\nMax nice priority 0 0 \nMax realtime priority 0 0 \n1\n"
	for _, c := range [][]string{
		{"nice", "-n", "-11"}, {"ionice", "-c", "1", "-n", "2"}, {"chrt", "-f", "10"}, {"chrt", "-r", "10"},
		{"nice", "-n", "7", "chrt", "-f", "10"}, // what is below the ordinary stays
		{"sh", "-c", `echo -500 >/proc/self/oom_score_adj || exit 99; exec "$0" "$@"`},
		{"prlimit", "--nice=40:40", "--rtprio=50:50"},
	} {
		probe := exec.Command(c[0], append(slices.Clone(c[1:]), "true")...)
		if err := probe.Run(); err != nil {
			t.Logf("SKIP(want %s, have %v)", strings.Join(c, " "), err)
			continue
		}
		nice := niceness(t) // the tests' own, which may be below the ordinary too
		switch strings.Join(c[:3], " ") {
		case "nice -n -11":
			nice = max(nice-11, 0)
		case "nice -n 7":
			nice = min(nice+7, 19)
		}
		want := strconv.Itoa(max(nice, 0)) + ordinary
		o := testkit.Run(t, testkit.Opts{Who: who, Setup: through(c...)}, "--", "sh", "-c", show)
		// A real-time process cannot enter a v1 cpu group: then nothing runs.
		if o.Result.Outcome == result.Failed && slices.Contains(c, "chrt") && strings.Contains(o.Stderr, "join cgroup") {
			t.Errorf("%q: the program has not given up the policy before it enters its group", c)
		}
		if o.Exit != 0 || strings.TrimSuffix(o.Stdout, "\n") != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s: exit %d, %q, want %q, %s", fmt.Sprint(c), o.Exit, o.Stdout, want, o.Stderr)
		}
	}
}
