package compat

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// TestPrograms: each runs as it would without a sandbox.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		file  string
		flags string
		last  string // "" is PASS
	}{
		{file: "A01.c"},
		{file: "A02.py", flags: "--memory 512m"},
		{file: "A03.py"},
		{file: "A04.py"},
		{file: "A05.py"},
		{file: "A07.js", flags: "--memory 512m"},
		{file: "A08.sh", flags: "--pids-limit 32 --memory 64m"},
		{file: "A09.py", flags: "--pids-limit 16 --memory 64m"},
		{file: "A11.js", flags: "--memory 512m"},
		{file: "A12.sh", flags: "--pids-limit 32 --memory 128m"},
		{file: "A13.c", flags: "--pids-limit 16 --memory 64m"},
		{file: "A14.c", flags: "--pids-limit 16 --memory 128m"},
		{file: "A19.py", flags: "--pids-limit 32 --memory 512m"},
		{file: "A20.py", flags: "--pids-limit 32 --memory 64m"},
		{file: "A22.py", flags: "--pids-limit 16 --memory 64m"},
		{file: "A23.sh", flags: "--pids-limit 16 --memory 32m"},
		{file: "A28.py", flags: "--pids-limit 32 --memory 128m"},
		{file: "A30.c", flags: "--pids-limit 16 --memory 64m", last: "PASS refused"},
		{file: "D10.sh", last: "PASS (" + loader() + ")"},
	} {
		t.Run(c.file, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				flags := append([]string{"--timeout", "60s"}, strings.Fields(c.flags)...)
				last := c.last
				if last == "" {
					last = "PASS"
				}
				passed(t, run(t, who, c.file, flags), last)
			})
		})
	}
}

// TestProgramsCanFail: what the tests above look at does tell a failure.
func TestProgramsCanFail(t *testing.T) {
	who := testkit.AsUser(t)
	for _, c := range []struct{ file, flags, want string }{
		{"A28.py", "--open-files 100", "FAIL: soft limit 100; 200 open files: Too many open files"},
		{"A22.py", "-e LC_ALL=POSIX -e PYTHONUTF8=0 -e PYTHONCOERCECLOCALE=0", "FAIL: stdout is ascii"},
	} {
		o := run(t, who, c.file, strings.Fields(c.flags))
		if o.Exit != 1 || strings.TrimSpace(o.Stdout) != c.want {
			t.Errorf("%s %s: exit %d, %q, want %q", c.file, c.flags, o.Exit, o.Stdout, c.want)
		}
	}
}

// The program is never PID 1, for which the kernel drops signals: its own
// signals end it, and the verdict names them.
func TestOwnSignals(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for name, signal := range map[string]int{"TERM": 15, "ABRT": 6, "KILL": 9, "SEGV": 11, "USR1": 10, "QUIT": 3, "HUP": 1} {
			o := run(t, who, "A25.py", nil, name)
			if o.Exit != 128+signal || o.Result.Outcome != result.Signaled || o.Result.Signal != signal {
				t.Errorf("%s: exit %d, %s by %d, want %d\n%s%s", name, o.Exit, o.Result.Outcome, o.Result.Signal, signal, o.Stdout, o.Stderr)
			}
		}
	})
}

// bytesOut is what A27.py writes.
func bytesOut() (stdout, stderr string) {
	var b strings.Builder
	for i := range 256 {
		b.WriteByte(byte(i))
	}
	return b.String() + "\xed\xa0\x80", "\xff\xfe"
}

func TestNotUTF8(t *testing.T) {
	stdout, stderr := bytesOut()
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := run(t, who, "A27.py", nil)
		if o.Exit != 0 || o.Stdout != stdout || o.Stderr != stderr {
			t.Errorf("exit %d, stdout %q, stderr %q", o.Exit, o.Stdout, o.Stderr)
		}
		o = run(t, who, "A27.py", []string{"--json"})
		r := o.Result
		if o.Exit != 0 || r.Stdout.Text != "" || r.Stderr.Text != "" {
			t.Errorf("exit %d, text %q and %q, want none", o.Exit, r.Stdout.Text, r.Stderr.Text)
		}
		if decoded(t, r.Stdout.Base64) != stdout || decoded(t, r.Stderr.Base64) != stderr {
			t.Errorf("base64 %q and %q", r.Stdout.Base64, r.Stderr.Base64)
		}
	})
}
