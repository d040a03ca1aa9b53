package limits

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// stream checks one stream's figures.
func stream(t *testing.T, name string, s result.Stream, bytes, kept int64) {
	t.Helper()
	if s.Bytes != bytes || s.Kept != kept || s.Truncated != (kept < bytes) {
		t.Errorf("%s: %d bytes, %d kept, truncated %t; want %d, %d, %t", name, s.Bytes, s.Kept, s.Truncated, bytes, kept, kept < bytes)
	}
}

// Each stream has its own limit, to the byte; the program goes on and its exit
// code is its own.
func TestOutputOfEachStream(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct{ out, err, outKept, errKept int64 }{
			{1000, 1000, 1000, 1000}, {1001, 1, 1000, 1}, {0, 5000, 0, 1000}, {300000, 200000, 1000, 1000},
		} {
			o := testkit.Run(t, testkit.Opts{Who: who}, "--output-limit", "1000", "--", "python3", "-c",
				"import sys; a, b = map(int, sys.argv[1:]); sys.stdout.write('o' * a); sys.stdout.flush(); sys.stderr.write('e' * b); sys.exit(7)",
				itoa(c.out), itoa(c.err))
			ended(t, o, result.Exited, 7, strings.Repeat("o", int(c.outKept)))
			if !strings.HasPrefix(o.Stderr, strings.Repeat("e", int(c.errKept))) || strings.Count(o.Stderr[c.errKept:], "e") > 5 {
				t.Errorf("stderr %d bytes", len(o.Stderr))
			}
			stream(t, "stdout", o.Result.Stdout, c.out, c.outKept)
			stream(t, "stderr", o.Result.Stderr, c.err, c.errKept)
			held(t, o, "output", 1000, result.ByClock)
		}
	})
}

// With the action kill, the first byte too many ends the run.
func TestOutputKill(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, to := range []string{"", ">&2"} {
			o := testkit.Sh(t, who, "yes "+to, "--output-limit", "5000", "--on-output-limit", "kill", "--timeout", "60s")
			if o.Result.Outcome != result.Output || o.Exit != 153 || o.Result.Signal != 9 {
				t.Errorf("%s, exit %d, signal %d", o.Result.Outcome, o.Exit, o.Result.Signal)
			}
			if kept := o.Result.Stdout.Kept + o.Result.Stderr.Kept; kept != 5000 {
				t.Errorf("%d bytes kept", kept)
			}
		}
		o := testkit.Sh(t, who, "head -c 5000 /dev/zero", "--output-limit", "5000", "--on-output-limit", "kill")
		ended(t, o, result.Exited, 0, strings.Repeat("\x00", 5000))
	})
}

// Four gigabytes of output cost the supervisor no memory, and the exit code
// is still the program's.
func TestOutputFlood(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		var cmd *exec.Cmd
		o := testkit.Opts{Who: who, Setup: func(c *exec.Cmd) { cmd = c }}
		out := testkit.RunC(t, o, []string{"--output-limit", "1m", "--timeout", "100s", "--memory", "16m"}, source(t, "flood.c"))
		if out.Exit != 5 || out.Result.Outcome != result.Exited || len(out.Stdout) != 1<<20 {
			t.Errorf("exit %d, %s, %d bytes of stdout", out.Exit, out.Result.Outcome, len(out.Stdout))
		}
		stream(t, "stdout", out.Result.Stdout, 2<<30, 1<<20)
		stream(t, "stderr", out.Result.Stderr, 2<<30, 1<<20)
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if usage.Maxrss > 50<<10 {
			t.Errorf("the supervisor or init took %d kB", usage.Maxrss)
		}
	})
}
