package limits

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// A control character takes six bytes in the result. What the program makes of
// them, as output or as names, is in the supervisor's memory once: no limit
// counts that memory.
func TestResultCostsNoMemory(t *testing.T) {
	testkit.Requires(t, "python3")
	const size, links, length = 16 << 20, 10000, 1000
	const print = "import sys\nfor i in range(256): sys.stdout.write('\\1' * 65536)"
	const link = "import os\nfor i in range(10000): os.symlink('\\1' * 1000, '/out/%d' % i)"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			name, script string
			most         int64 // more with a result than without, which holds the names too
			flags        []string
		}{
			{"output", print, 3 * size, []string{"--output-limit", "16m"}},
			{"artifacts", link, links * length, []string{"--out-files", "10000"}},
		} {
			peak := func(flags ...string) int64 {
				dir := testkit.Dir(t)
				if err := os.Chmod(dir, 0o777); err != nil {
					t.Fatal(err)
				}
				null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer null.Close()
				var cmd *exec.Cmd
				o := testkit.Opts{Who: who, Verb: "run", Stdout: null, Setup: func(c *exec.Cmd) { cmd = c }}
				args := append(append(append(who.Flags(), "--timeout", "100s"), flags...), c.flags...)
				for i, a := range args {
					args[i] = strings.ReplaceAll(a, "DIR", dir)
				}
				if out := testkit.Run(t, o, append(args, "--", "python3", "-c", c.script)...); out.Exit != 0 {
					t.Fatalf("%s: exit %d %.200s", c.name, out.Exit, out.Stderr)
				}
				return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
			}
			without := peak("--out", "DIR/none")
			if with := peak("--out", "DIR/out", "--json", "--result", "DIR/result"); with-without > c.most {
				t.Errorf("%s: the supervisor took %d bytes more with a result than the %d without, want at most %d", c.name, with-without, without, c.most)
			}
		}
	})
}

// A caller that waits for the end first and reads then has a result that is
// longer than a pipe holds, if the program wants that. It is not waited for.
func TestReaderOfTheResultIsStuck(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const script = "head -c 100000 /dev/zero"
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		const wants = "sandglass: error: writing stdout: the reader takes nothing any more\nhint: "
		p := testkit.Start(t, testkit.Opts{Who: who, Stdout: w}, "--json", "--", "sh", "-c", script)
		w.Close()
		r2, w2, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r2.Close()
		// Descriptor 4, since 3 is a file of the testkit's.
		flags := append(who.Flags(), "--json", "--result-fd", "4")
		q := testkit.Start(t, testkit.Opts{Who: who, Verb: "run", Files: []*os.File{w2}}, append(flags, "--", "sh", "-c", script)...)
		w2.Close()
		o := p.Wait()
		if o.Exit != 125 || !strings.HasPrefix(o.Stderr, wants) || o.Result.Outcome != result.Exited || o.Result.ExitCode != 0 || len(o.Result.Stdout.Text) != 100000 {
			t.Errorf("--json: exit %d, %s %d, stderr %q", o.Exit, o.Result.Outcome, o.Result.ExitCode, o.Stderr)
		}
		if o := q.Wait(); o.Exit != 125 || !strings.HasPrefix(o.Stderr, "sandglass: error: writing the result: the reader takes nothing any more\n") || !strings.HasSuffix(o.Stdout, "}\n") {
			t.Errorf("--result-fd: exit %d, %d bytes of stdout, stderr %q", o.Exit, len(o.Stdout), o.Stderr)
		}
	})
}
