package limits

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// The wall clock ends every kind of program that would rather go on, keeps what
// it had printed, and leaves nothing of it running.
func TestTimeout(t *testing.T) {
	const nap = "sh -c 'sleep 1000; :' $0"
	for _, c := range []struct{ name, script string }{
		{"sleeps", "exec " + nap},
		{"ignores signals", "trap '' HUP INT QUIT TERM XCPU ALRM; while :; do :; done"},
		{"stopped", "kill -STOP $$"},
		{"all stopped", nap + " & kill -STOP -1; " + nap},
		{"in another session", "setsid setsid " + nap + " & setsid " + nap + " & " + nap},
		{"a daemon", "(setsid " + nap + " & ) & exec " + nap},
		{"closed its streams", "exec >&- 2>&- <&-; " + nap},
		{"execs for ever", "exec sh -c \"$AGAIN\" $0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				m := mark(t)
				// So long that a slow machine has come to the script's end by then.
				o := testkit.Run(t, testkit.Opts{Who: who}, "--timeout", "3s", "-e", "AGAIN=exec sh -c \"$AGAIN\" $0",
					"--", "sh", "-c", "echo begun; echo told >&2; "+c.script, m)
				ended(t, o, result.Timeout, 124, "begun\n")
				held(t, o, "timeout", 3000, result.ByClock)
				if o.Stderr != "told\nsandglass: stopped: the time limit was reached after "+strconv.FormatInt(o.Result.WallMS, 10)+" ms\n" && o.Stderr != "told\n" {
					t.Errorf("stderr %q", o.Stderr)
				}
				if o.Result.WallMS < 3000 || o.Result.Signal != 9 {
					t.Errorf("wall_ms %d, signal %d", o.Result.WallMS, o.Result.Signal)
				}
				nobodyLeft(t, m)
			})
		})
	}
}

// A daemon that holds the output open does not keep the run open.
func TestTimeoutDaemon(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "B03.py", "--timeout 4s --memory 64m --pids-limit 16")
		ended(t, o, result.Timeout, 124, "started\n")
		nobodyLeft(t, "b03-daemon")
	})
}

// Time to sleep costs no CPU, and the verdict is no exit code of the program's.
func TestTimeoutIsNoExit(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		// Where starting it costs an emulated CPU a second, sleeping has two left.
		o := script(t, who, "B06.sh", "--timeout 3s --cpu-time 2s --memory 32m --pids-limit 16")
		ended(t, o, result.Timeout, 124, "out so far\n")
		if o.Result.CPUMS > 1500 || o.Result.WallMS < 3000 {
			t.Errorf("cpu_ms %d, wall_ms %d", o.Result.CPUMS, o.Result.WallMS)
		}
		o = testkit.Sh(t, who, "exit 124")
		ended(t, o, result.Exited, 124, "")
	})
}

// What the program leaves behind when it ends by itself ends with it.
func TestLeftBehind(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "B04.sh", "--timeout 60s --memory 32m --pids-limit 16 -e SECS=50")
		ended(t, o, result.Exited, 0, "main done\n")
		if o.Result.WallMS >= 50_000 {
			t.Errorf("wall_ms %d: it waited for the child", o.Result.WallMS)
		}
		nobodyLeft(t, "b04-child")
	})
}

// acknowledged waits, inside, until init reaps: only then has the supervisor
// looked at the program and started its clocks. Then the program says so.
const acknowledged = "n=$(sleep 0 >/dev/null & echo $!); while kill -0 $n 2>/dev/null; do :; done; echo begun; "

// jobOf is a shell's job: a process group of its own, with a parent elsewhere in
// the session, for the kernel stops no group that nobody would continue.
func jobOf(cmd *exec.Cmd) { cmd.SysProcAttr.Setpgid = true }

// While the supervisor is stopped (SIGSTOP, a debugger) nobody keeps the time
// but init: it ends the run. The supervisor tells what it was when it goes on.
func TestTimeoutOfAStoppedSupervisor(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		m := mark(t)
		// It has to begin, and we to stop the supervisor, before that is over.
		p := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", "3s",
			"--", "sh", "-c", "trap '' TERM; "+acknowledged+"sleep 1000; :", m)
		p.WaitLine("begun")
		p.Stop()
		testkit.Eventually(t, "the program ends while its supervisor is stopped", func() bool {
			return len(alive(m)) == 0
		})
		if got := stateOf(t, p.PID()); got != "T (stopped)" {
			t.Errorf("the supervisor is %s, want T (stopped)", got)
		}
		p.Signal(syscall.SIGCONT)
		o := p.Wait()
		ended(t, o, result.Timeout, 124, "begun\n")
		held(t, o, "timeout", 3000, result.ByClock)
		if o.Result.WallMS < 5000 || o.Result.Signal != 9 || o.Result.Error != "" {
			t.Errorf("wall_ms %d, signal %d, error %q", o.Result.WallMS, o.Result.Signal, o.Result.Error)
		}
		nobodyLeft(t, m)
	})
}

// A program that ends in its time while the supervisor is stopped has ended, however
// late the supervisor hears of it: its clock fires first.
func TestEndHeardOfLate(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		m, dir := mark(t), testkit.Dir(t)
		const limit = 4 * time.Second // an emulated machine's sleep(1) takes its time to start
		p := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", limit.String(), "-v", dir+":/data",
			"--", "sh", "-c", acknowledged+"until [ -e /data/end ]; do sleep 0.01; done; exit 3", m)
		p.WaitLine("begun")
		begun := time.Now()
		p.Stop()
		if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the program ends while its supervisor is stopped", func() bool {
			return len(alive(m)) == 0 && time.Since(begun) > limit
		})
		if got := stateOf(t, p.PID()); got != "T (stopped)" {
			t.Errorf("the supervisor is %s, want T (stopped)", got)
		}
		p.Signal(syscall.SIGCONT)
		ended(t, p.Wait(), result.Exited, 3, "begun\n")
	})
}

// TestEndAfterItsTime: what ends by itself after its time, while the supervisor is
// stopped, has passed its limit all the same.
func TestEndAfterItsTime(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		m, dir := mark(t), testkit.Dir(t)
		const limit = 3 * time.Second // it has to begin before that
		p := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", limit.String(), "-v", dir+":/data",
			"--", "sh", "-c", acknowledged+"until [ -e /data/end ]; do sleep 0.01; done; exit 3", m)
		p.WaitLine("begun")
		begun := time.Now()
		p.Stop()
		testkit.Eventually(t, "the end of its time", func() bool { return time.Since(begun) > limit })
		if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the program's end", func() bool { return len(alive(m)) == 0 })
		p.Signal(syscall.SIGCONT)
		ended(t, p.Wait(), result.Timeout, 124, "begun\n")
	})
}

// alive are the processes with this mark but for the supervisor, whose command
// line has it as well.
func alive(m string) (list []string) {
	for _, p := range testkit.Processes(m) {
		if !strings.Contains(p, "--timeout") {
			list = append(list, p)
		}
	}
	return list
}

func stateOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "State:\t"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no State in %q", text)
	return ""
}

// Ctrl-Z, and what a terminal does to who reads or writes in the background,
// stops no clock; the program has the kernel's default for these all the same.
func TestStopSignalsOfTheTerminal(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		m := mark(t)
		p := testkit.Start(t, testkit.Opts{Who: who, Setup: jobOf}, "--timeout", "3s", "--",
			"sh", "-c", "grep SigIgn /proc/self/status; "+acknowledged+"sleep 1000; :", m)
		p.WaitLine("begun")
		for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
			p.Signal(s)
		}
		o := p.Wait()
		ended(t, o, result.Timeout, 124, "SigIgn:\t0000000000000000\nbegun\n")
		nobodyLeft(t, m)
	})
}
