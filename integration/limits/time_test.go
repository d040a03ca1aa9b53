package limits

import (
	"strconv"
	"testing"

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
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				m := mark(t)
				o := testkit.Run(t, testkit.Opts{Who: who}, "--timeout", "500ms", "-e", "AGAIN=exec sh -c \"$AGAIN\" $0",
					"--", "sh", "-c", "echo begun; echo told >&2; "+c.script, m)
				ended(t, o, result.Timeout, 124, "begun\n")
				held(t, o, "timeout", 500, result.ByClock)
				if o.Stderr != "told\nsandglass: stopped: the time limit was reached after "+strconv.FormatInt(o.Result.WallMS, 10)+" ms\n" && o.Stderr != "told\n" {
					t.Errorf("stderr %q", o.Stderr)
				}
				if o.Result.WallMS < 500 || o.Result.Signal != 9 {
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
		o := script(t, who, "B03.py", "--timeout 1s --memory 64m --pids-limit 16")
		ended(t, o, result.Timeout, 124, "started\n")
		nobodyLeft(t, "b03-daemon")
	})
}

// Time to sleep costs no CPU, and the verdict is no exit code of the program's.
func TestTimeoutIsNoExit(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "B06.sh", "--timeout 1s --cpu-time 900ms --memory 32m --pids-limit 16")
		ended(t, o, result.Timeout, 124, "out so far\n")
		if o.Result.CPUMS > 500 || o.Result.WallMS < 1000 {
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
