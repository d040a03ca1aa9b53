package escape

import (
	_ "embed"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
	"sandglass/pkg/seccomp/sysnum"
)

const explain = "--explain-denials"

// An explained run asks the supervisor where the filter would have refused. The
// answers are the same ones, to the errno, and every one of them is counted.
func TestExplainedRunRefusesTheSame(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		calls := refusedCalls()
		attempt(t, who, []string{explain}, calls)
		refused := int64(0)
		for _, c := range calls {
			if c.want != "OK" {
				refused++
			}
		}
		ops := make([]string, len(calls))
		for i, c := range calls {
			ops[i] = c.op
		}
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, []string{explain}, trySource, ops...))
		told := o.Result.DeniedMore
		for _, d := range o.Result.Denied {
			told += d.Count
		}
		if rows := min(64, int(refused)); told != refused || len(o.Result.Denied) != rows {
			t.Errorf("%d refusals in %d rows, want %d in %d", told, len(o.Result.Denied), refused, rows)
		}
	})
}

// chmodCall is the call that chmod(3) makes.
func chmodCall() string {
	if _, ok := sysnum.Number(runtime.GOARCH, "chmod"); ok {
		return "chmod"
	}
	return "fchmodat"
}

// What is told: the call by name, the arguments that the profile decides by, the
// errno, the program's name for itself, how often.
func TestDenialsAreTold(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		ops := []string{
			"ptrace:0", "ptrace:0", "ptrace:0", "socket:38:5:0", "unshare:10000000", "connect:192.0.2.1:443",
			"connect:127.0.0.1:9", "chmod:4755:/tmp", call("getpid", ""),
		}
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, []string{explain}, trySource, ops...))
		want := []result.Denial{
			{Kind: "syscall", What: "ptrace", Args: "PTRACE_SEIZE", Errno: "EPERM", Program: "prog", Count: 3},
			{Kind: "host", What: "192.0.2.1:443", Errno: "ENETUNREACH", Program: "prog", Count: 1},
			{Kind: "syscall", What: chmodCall(), Args: "04755", Errno: "EPERM", Program: "prog", Count: 1},
			{Kind: "syscall", What: "socket", Args: "AF_ALG, SOCK_SEQPACKET, 0", Errno: "EAFNOSUPPORT", Program: "prog", Count: 1},
			{Kind: "syscall", What: "unshare", Args: "CLONE_NEWUSER", Errno: "EPERM", Program: "prog", Count: 1},
		}
		if !slices.Equal(o.Result.Denied, want) {
			t.Errorf("got  %+v\nwant %+v", o.Result.Denied, want)
		}
		told := `hint: ptrace(PTRACE_SEIZE) was refused 3 times (prog): run with --seccomp debug
hint: 192.0.2.1:443 was out of reach once (prog): there is no network but loopback, and what --allow-host lists
hint: chmod(04755) was refused once (prog) with EPERM
hint: socket(AF_ALG, SOCK_SEQPACKET, 0) was refused once (prog) with EAFNOSUPPORT
hint: unshare(CLONE_NEWUSER) was refused once (prog) with EPERM
`
		if o.Stderr != told {
			t.Errorf("stderr: %q, want %q", o.Stderr, told)
		}
		o = must(t, testkit.RunC(t, testkit.Opts{Who: who}, nil, trySource, ops...))
		if len(o.Result.Denied) != 0 || o.Stderr != "" {
			t.Errorf("without the flag: %+v, %q", o.Result.Denied, o.Stderr)
		}
	})
}

// Writes outside of what may be written are told, by the path as it is written
// down; those inside and reads are not.
func TestRefusedWritesAreTold(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		o := testkit.Sh(t, who, `exec 2>&1
echo x >/etc/x; mkdir /data; cd /usr/share; touch rel; rm -f /tmp/../usr/bin/env
echo x >/tmp/ok; mkdir /work/d; touch /mnt/w/x; mv /tmp/ok /work/d; echo x >/dev/null; cat /etc/hosts >/dev/null; echo x >/var/tmp/y; exec 2>/dev/null; echo end`,
			explain, "-v", dir+":/mnt/w:rw")
		want := []result.Denial{
			{Kind: "file", What: "/data", Args: "mkdir", Program: "mkdir", Count: 1},
			{Kind: "file", What: "/etc/x", Args: "openat", Program: "sh", Count: 1},
			{Kind: "file", What: "/usr/bin/env", Args: "unlinkat", Program: "rm", Count: 1},
			{Kind: "file", What: "/usr/share/rel", Args: "openat", Program: "touch", Count: 1},
		}
		var got []result.Denial
		for _, d := range o.Result.Denied {
			if d.Kind == "file" {
				got = append(got, d)
			}
		}
		if !slices.Equal(got, want) || !strings.HasSuffix(o.Stdout, "end\n") {
			t.Errorf("got  %+v\nwant %+v\n%s", got, want, o.Stdout)
		}
		const told = "hint: writing /data (mkdir) was out of reach once (mkdir): only /tmp, /work, HOME, /out and what -v mounts with :rw can be written\n"
		if !strings.Contains(o.Stderr, told) {
			t.Errorf("stderr: %q", o.Stderr)
		}
	})
}

//go:embed testdata/deny.c
var denySource string

// A program that asks for refusals as fast as it can, in eight threads, with a
// timer that interrupts them, gets the right ones and no way past: the table
// stays small, and the run ends by its clock.
func TestFloodOfRefusals(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, []string{explain}, denySource, "count"))
		if want := "8000 refused, 0 otherwise\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
		var told int64
		for _, d := range o.Result.Denied {
			told += d.Count
		}
		if told += o.Result.DeniedMore; told < 8000 {
			t.Errorf("%d were told, want each of 8000", told)
		}
		o = testkit.RunC(t, testkit.Opts{Who: who}, []string{explain, "--timeout", "1s"}, denySource, "for ever")
		if o.Result.Outcome != result.Timeout || o.Exit != 124 {
			t.Errorf("for ever: %s, exit %d; want timeout and 124", o.Result.Outcome, o.Exit)
		}
	})
}

// What the program chooses in a row cannot steer a terminal.
func TestDenialsAreHarmlessText(t *testing.T) {
	o := must(t, testkit.RunC(t, testkit.Opts{}, []string{explain}, denySource, "name"))
	if len(o.Result.Denied) != 1 || o.Result.Denied[0].Program != "?[2J?e" {
		t.Errorf("got %+v", o.Result.Denied)
	}
	if strings.Contains(o.Stderr, "\x1b") || !strings.Contains(o.Stderr, "(?[2J?e)") {
		t.Errorf("stderr: %q", o.Stderr)
	}
}

//go:embed testdata/trace.c
var traceSource string

// --seccomp debug lets a program trace its child and read its memory, and
// nothing more: init stays out of reach, and a tracer gets no call past the
// filter by putting another number in its place.
func TestDebugTracesOnlyOnesOwn(t *testing.T) {
	testkit.Requires(t, "amd64")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, []string{"--seccomp", "debug"}, traceSource))
		want := "traced child: mount EPERM, read 42\ninit: seize EPERM, read EPERM\nunshare EPERM\n"
		if o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
		o = testkit.RunC(t, testkit.Opts{Who: who}, nil, traceSource)
		if want := "PTRACE_TRACEME EPERM\n"; o.Stdout != want || o.Exit != 1 {
			t.Errorf("default: exit %d, %q, want 1 and %q", o.Exit, o.Stdout, want)
		}
	})
}

const computes = `
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <errno.h>
#include <string.h>
int main(void) {
    double s = 0;
    for (int i = 1; i < 1000; i++) s += 1.0 / i;
    void *big = malloc(8 << 20);
    memset(big, 1, 8 << 20);
    int open_errno = open("/etc/passwd", O_RDONLY) < 0 ? errno : 0;
    printf("%.3f %d\n", s, open_errno);
    return 0;
}`

// --seccomp minimal is enough for a static program that computes, and opens nothing.
func TestMinimalComputes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, []string{"--seccomp", "minimal"}, computes))
		if want := "7.484 1\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
}
