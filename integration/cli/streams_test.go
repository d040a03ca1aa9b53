package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/schema"
	"sandglass/pkg/result"
)

// everyByte is all bytes in all orders that matter to a line or text reader.
func everyByte(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// Output comes through untouched: every byte, both streams, exactly up to the limit.
func TestBinaryOutput(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const limit = 1 << 20
		dir := own(t, who)
		data := everyByte(limit)
		put(t, who, 0o644, string(data), dir, "data")
		mount := []string{"-v", dir + ":/data:ro", "--timeout", "60s"}
		for _, c := range []struct {
			name, script string
			stdout       []byte
			stderr       []byte
			outBytes     int64
			truncated    bool
		}{
			{"stdout", "cat /data/data", data, nil, limit, false},
			{"stderr", "cat /data/data >&2", nil, data, 0, false},
			{"both at once", "cat /data/data >&2 & cat /data/data; wait", data, data, limit, false},
			{"one byte more", "cat /data/data; printf x", data, nil, limit + 1, true},
			{"ten times as much", "for i in 0 1 2 3 4 5 6 7 8 9; do cat /data/data; done", data, nil, 10 * limit, true},
			{"no newline at the end", "printf 'a\\0b\\r'", []byte("a\x00b\r"), nil, 4, false},
			{"nothing", ":", nil, nil, 0, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				o := testkit.Opts{Who: who, Stdout: &stdout, Stderr: &stderr}
				out := testkit.Run(t, o, append(mount, "--", "sh", "-c", c.script)...)
				if out.Exit != 0 {
					t.Errorf("exit %d", out.Exit)
				}
				if !bytes.Equal(stdout.Bytes(), c.stdout) {
					t.Errorf("stdout differs: %d bytes, want %d", stdout.Len(), len(c.stdout))
				}
				if !bytes.Equal(stderr.Bytes(), c.stderr) {
					t.Errorf("stderr differs: %d bytes, want %d", stderr.Len(), len(c.stderr))
				}
				want := result.Stream{Bytes: c.outBytes, Kept: int64(len(c.stdout)), Truncated: c.truncated}
				if out.Result.Stdout != want {
					t.Errorf("result: %+v, want %+v", out.Result.Stdout, want)
				}
			})
		}
	})
}

// Every outcome has its exit code, and the result tells it from the program's own.
func TestOutcomes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		testkit.Requires(t, "python3")
		s := schema.Load(t, filepath.Join(testkit.Root(t), "docs", "result.schema.json"))
		dir := own(t, who)
		for _, c := range []struct {
			name    string
			flags   []string
			argv    []string
			outcome result.Outcome
			exit    int
			signal  int
		}{
			{"zero", nil, []string{"true"}, result.Exited, 0, 0},
			{"one", nil, []string{"false"}, result.Exited, 1, 0},
			{"own 124", nil, []string{"sh", "-c", "exit 124"}, result.Exited, 124, 0},
			{"own 125", nil, []string{"sh", "-c", "exit 125"}, result.Exited, 125, 0},
			{"own 127", nil, []string{"sh", "-c", "exit 127"}, result.Exited, 127, 0},
			{"own 137", nil, []string{"sh", "-c", "exit 137"}, result.Exited, 137, 0},
			{"255", nil, []string{"sh", "-c", "exit 255"}, result.Exited, 255, 0},
			{"own SIGTERM", nil, []string{"sh", "-c", "kill -TERM $$"}, result.Signaled, 143, 15},
			{"own SIGKILL", nil, []string{"sh", "-c", "kill -KILL $$"}, result.Signaled, 137, 9},
			{"segmentation fault", nil, []string{"sh", "-c", "kill -SEGV $$"}, result.Signaled, 139, 11},
			{"timeout", []string{"--timeout", "300ms"}, []string{"sh", "-c", "while :; do :; done"}, result.Timeout, 124, 9},
			{"cpu time", []string{"--timeout", "60s", "--cpu-time", "200ms"}, []string{"sh", "-c", "while :; do :; done"}, result.CPUTime, 124, 9},
			{"memory", []string{"--memory", "64m", "--timeout", "60s"},
				[]string{"python3", "-c", "import time\nx=[]\nfor i in range(300): x.append(bytearray(b'x')*(1<<20))\ntime.sleep(50)"}, result.Memory, 137, 9},
			{"output", []string{"--on-output-limit", "kill", "--output-limit", "64k", "--timeout", "60s"}, []string{"yes"}, result.Output, 153, 9},
			{"not found", nil, []string{"no-such-command"}, result.Refused, 127, 0},
			{"not executable", nil, []string{"/etc/passwd"}, result.Refused, 126, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				file := filepath.Join(dir, "result.json")
				args := append(append([]string{}, c.flags...), "--")
				out := testkit.Run(t, testkit.Opts{Who: who}, append(args, c.argv...)...)
				if out.Exit != c.exit || out.Result.Outcome != c.outcome || out.Result.ExitCode != c.exit || out.Result.Signal != c.signal {
					t.Errorf("exit %d, result %s %d signal %d, want %s %d signal %d\nstderr %q",
						out.Exit, out.Result.Outcome, out.Result.ExitCode, out.Result.Signal, c.outcome, c.exit, c.signal, out.Stderr)
				}
				// Both ways to ask for the result on a file, held to the schema.
				for _, way := range [][]string{{"--result", file}, {"--json"}} {
					text := resultText(t, who, file, append(append(append(way, who.Flags()...), args...), c.argv...))
					for _, bad := range s.Validate(text, way[0]) {
						t.Error(bad)
					}
					var r result.Result
					if err := json.Unmarshal(text, &r); err != nil || r.Outcome != c.outcome || r.ExitCode != c.exit {
						t.Errorf("%s: %v %s %d, want %s %d", way[0], err, r.Outcome, r.ExitCode, c.outcome, c.exit)
					}
				}
			})
		}
	})
}

// resultText runs sandglass run without the testkit's own --result-fd.
func resultText(t *testing.T, who testkit.Who, file string, args []string) []byte {
	t.Helper()
	out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, args...)
	if args[0] == "--json" {
		return []byte(out.Stdout)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// --json puts one line on stdout, the result with the captured output, and
// nothing beside it; --result-fd writes the same to a descriptor.
func TestJSON(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		args := append([]string{"--json"}, who.Flags()...)
		out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, append(args, "--", "sh", "-c", `printf 'a\n'; printf '\377\0' >&2; exit 3`)...)
		if out.Exit != 3 || out.Stderr != "" || strings.Count(out.Stdout, "\n") != 1 || !strings.HasSuffix(out.Stdout, "}\n") {
			t.Fatalf("exit %d, stderr %q, stdout %q", out.Exit, out.Stderr, out.Stdout)
		}
		var r result.Result
		if err := json.Unmarshal([]byte(out.Stdout), &r); err != nil {
			t.Fatal(err)
		}
		if want := (result.Stream{Bytes: 2, Kept: 2, Text: "a\n"}); r.Stdout != want {
			t.Errorf("stdout %+v, want %+v", r.Stdout, want)
		}
		if want := (result.Stream{Bytes: 2, Kept: 2, Base64: "/wA="}); r.Stderr != want {
			t.Errorf("stderr %+v, want %+v", r.Stderr, want)
		}
		if r.Schema != 1 || r.Outcome != result.Exited || r.ExitCode != 3 || len(r.PolicySHA256) != 64 {
			t.Errorf("schema %d outcome %s exit %d policy %q", r.Schema, r.Outcome, r.ExitCode, r.PolicySHA256)
		}
	})
}

// A command line that is refused has its result where it was asked for.
func TestRefusalsHaveAResult(t *testing.T) {
	who := testkit.AsUser(t)
	s := schema.Load(t, filepath.Join(testkit.Root(t), "docs", "result.schema.json"))
	dir := own(t, who)
	file := filepath.Join(dir, "r.json")
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"-v", "/etc:/x", "--", "true"}, 125, `--volume: host path "/etc" is refused: it holds the host's accounts, keys and settings`},
		{[]string{"--memory", "1k", "--", "true"}, 125, "--memory: 1k is too small: at least 6m"},
		{[]string{"nosuch.py"}, 127, `cannot read "nosuch.py": no such file or directory`},
		{[]string{"--privileged", "--", "true"}, 125, "--privileged is refused: it gives the program every capability and every device of the host"},
	} {
		for _, way := range [][]string{{"--json"}, {"--result", file}} {
			if way[0] == "--result" && c.args[0] == "--privileged" {
				continue // the flags could not all be read
			}
			out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, append(way, c.args...)...)
			text := []byte(out.Stdout)
			if way[0] == "--result" {
				text = []byte(read(t, file))
			}
			for _, bad := range s.Validate(text, way[0]) {
				t.Error(bad)
			}
			var r result.Result
			if err := json.Unmarshal(text, &r); err != nil || r.Outcome != result.Refused || r.ExitCode != c.exit || r.Error != c.want || out.Exit != c.exit {
				t.Errorf("%s %q: %v %s %d %q exit %d", way, c.args, err, r.Outcome, r.ExitCode, r.Error, out.Exit)
			}
			if !strings.HasPrefix(out.Stderr, "sandglass: error: "+c.want+"\nhint: ") {
				t.Errorf("%s %q: stderr %q", way, c.args, out.Stderr)
			}
		}
	}
	// A result file that a program could have replaced is not written, not even
	// to say so.
	target := put(t, who, 0o644, "kept", dir, "target")
	out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, "--result", target, "-v", dir+":/d:rw", "--", "true")
	if out.Exit != 125 || read(t, target) != "kept" {
		t.Errorf("exit %d, the file is %q", out.Exit, read(t, target))
	}
}

// The program cannot write the result: the descriptor is not its own.
func TestResultFDIsNotThePrograms(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		out := testkit.Sh(t, who, `ls /proc/self/fd | tr '\n' ' '; for n in 3 4 5 6 7 8 9; do (echo forged >&$n) 2>/dev/null && echo wrote $n; done`)
		// 3 is the directory that ls itself reads.
		if out.Stdout != "0 1 2 3 " {
			t.Errorf("descriptors inside: %q", out.Stdout)
		}
		if !out.HasResult || out.Result.Outcome != result.Exited {
			t.Errorf("result: %+v", out.Result)
		}
	})
}

func TestStdin(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		data := everyByte(300 << 10)
		for _, c := range []struct {
			name string
			args []string
			want []byte
		}{
			{"-i passes it on", []string{"-i", "--", "cat"}, data},
			{"--interactive and an early end", []string{"--interactive", "--", "head", "-c", "5"}, data[:5]},
			{"without -i it is at its end", []string{"--", "cat"}, nil},
		} {
			var stdout bytes.Buffer
			out := testkit.Run(t, testkit.Opts{Who: who, Stdin: bytes.NewReader(data), Stdout: &stdout}, c.args...)
			if out.Exit != 0 || !bytes.Equal(stdout.Bytes(), c.want) {
				t.Errorf("%s: exit %d, %d bytes, want %d, stderr %q", c.name, out.Exit, stdout.Len(), len(c.want), out.Stderr)
			}
		}
	})
}

// A caller's stdin that never ends does not keep a run open.
func TestOpenStdinDoesNotHang(t *testing.T) {
	who := testkit.AsUser(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	for _, args := range [][]string{{"-i", "--", "true"}, {"--", "cat"}} {
		if out := testkit.Run(t, testkit.Opts{Who: who, Stdin: r}, args...); out.Exit != 0 {
			t.Errorf("%q: exit %d %q", args, out.Exit, out.Stderr)
		}
	}
}

// Ctrl-C and SIGTERM end the sandbox, whatever the program does about signals.
func TestSignals(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for sig, exit := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
			marker := "sandglass-signal-" + sig.String() + "-" + who.Name
			marker = strings.ReplaceAll(marker, " ", "-")
			p := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", "60s", "--", "sh", "-c",
				"trap '' INT TERM HUP QUIT; setsid sleep 1000 & echo ready; while :; do sleep 1000; done", marker)
			p.WaitLine("ready")
			p.Signal(sig)
			out := p.Wait()
			if out.Exit != exit || out.Result.Outcome != result.Canceled || out.Result.Signal != int(sig) || out.Result.ExitCode != exit {
				t.Errorf("%v: exit %d, result %s signal %d exit %d", sig, out.Exit, out.Result.Outcome, out.Result.Signal, out.Result.ExitCode)
			}
			clean(t, out, marker, "", nil)
		}
	})
}

// What a terminal is told never reaches a pipe: notes of sandglass's own stay
// out of the program's stderr.
func TestNothingOfOursOnThePrograms(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		out := testkit.Run(t, testkit.Opts{Who: who}, "--timeout", "3s", "--", "sh", "-c", "echo out; echo err >&2; while :; do :; done")
		if out.Exit != 124 || out.Stdout != "out\n" || out.Stderr != "err\n" {
			t.Errorf("exit %d, stdout %q, stderr %q", out.Exit, out.Stdout, out.Stderr)
		}
	})
}

// What the caller's stdout did not take is an error: the program's end, which
// the result keeps, would hide it.
func TestCallersStdoutIsFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testkit.Skip(t, "/dev/full", err.Error())
	}
	defer full.Close()
	const want = "sandglass: error: writing stdout: no space left on device\n"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		out := testkit.Run(t, testkit.Opts{Who: who, Stdout: full}, "--", "echo", "hi")
		if r := out.Result; out.Exit != 125 || out.Stderr != want || r.Outcome != result.Exited || r.ExitCode != 0 || r.Error != "writing stdout: no space left on device" {
			t.Errorf("exit %d, stderr %q, result %s %d %q", out.Exit, out.Stderr, r.Outcome, r.ExitCode, r.Error)
		}
		out = testkit.Run(t, testkit.Opts{Who: who, Stdout: full}, "--", "true") // nothing was lost
		if out.Exit != 0 || out.Stderr != "" {
			t.Errorf("without output: exit %d, stderr %q", out.Exit, out.Stderr)
		}
		out = testkit.Run(t, testkit.Opts{Who: who, Stderr: full}, "--", "sh", "-c", "echo hi >&2; exit 4")
		if out.Exit != 125 || out.Result.ExitCode != 4 || out.Result.Error != "writing stderr: no space left on device" {
			t.Errorf("stderr: exit %d, result %d %q", out.Exit, out.Result.ExitCode, out.Result.Error)
		}
		for _, args := range [][]string{{"run", "--json", "--", "true"}, {"run", "--help"}, {"version"}, {"--help"}, {"plan", "--", "true"}, {"check", "--help"}, {"session"}} {
			verb, rest := args[0], args[1:]
			if verb == "run" && rest[0] == "--json" {
				rest = append(who.Flags(), rest...)
			}
			out := testkit.Run(t, testkit.Opts{Who: who, Verb: verb, Stdout: full}, rest...)
			if out.Exit != 125 || !strings.HasPrefix(out.Stderr, want+"hint: ") {
				t.Errorf("%q: exit %d, stderr %q", args, out.Exit, out.Stderr)
			}
		}
	})
}

// A reader that went away (a pager that quit) ends neither the clean-up nor the
// verdict: the program meets SIGPIPE, as it would without a sandbox.
func TestCallersStdoutIsGone(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		defer w.Close()
		for _, c := range []struct {
			script  string
			outcome result.Outcome
			exit    int
		}{
			{"exec yes", result.Signaled, 141},
			{"yes; exit 5", result.Exited, 5},
			{"trap '' PIPE; yes 2>/dev/null; exit 6", result.Exited, 6},
		} {
			out := testkit.Run(t, testkit.Opts{Who: who, Stdout: w}, "--timeout", "60s", "--", "sh", "-c", c.script)
			if out.Exit != c.exit || out.Result.Outcome != c.outcome {
				t.Errorf("%s: exit %d, %s, want %d, %s", c.script, out.Exit, out.Result.Outcome, c.exit, c.outcome)
			}
			clean(t, out, "", "", nil)
		}
	})
}

// A stream that is closed when sandglass starts is /dev/null, which cannot be
// told from the one that a caller passes. No file that is opened later becomes
// the program's stream instead.
func TestCallersStreamsAreClosed(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, closed := range []string{">&-", "2>&-", "<&- >&- 2>&-"} {
			file := filepath.Join(own(t, who), "result")
			out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run", Setup: func(c *exec.Cmd) {
				c.Args = append([]string{"sh", "-c", `exec "$0" "$@" ` + closed, c.Path}, c.Args[1:]...)
				c.Path = "/bin/sh"
			}}, append(append([]string{"--result", file}, who.Flags()...), "--", "sh", "-c", "echo out; echo err >&2")...)
			stdout, stderr := "out\n", "err\n"
			if strings.Contains(closed, " >&-") || closed[0] == '>' {
				stdout = ""
			}
			if strings.Contains(closed, "2>") {
				stderr = ""
			}
			var r result.Result
			if err := json.Unmarshal([]byte(read(t, file)), &r); err != nil || r.Stdout.Kept != 4 || r.Stderr.Kept != 4 || r.Error != "" {
				t.Errorf("%s: %v, result %+v", closed, err, r)
			}
			if out.Exit != 0 || out.Stdout != stdout || out.Stderr != stderr {
				t.Errorf("%s: exit %d, stdout %q, stderr %q", closed, out.Exit, out.Stdout, out.Stderr)
			}
		}
	})
}
