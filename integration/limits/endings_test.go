package limits

import (
	"fmt"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// The program's own end is told as it was: no exit code or signal of its own is
// taken for a verdict of ours.
func TestOwnEndings(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, code := range []int{0, 1, 2, 77, 124, 125, 126, 127, 128, 130, 137, 143, 153, 255} {
			ended(t, testkit.Sh(t, who, fmt.Sprintf("exit %d", code)), result.Exited, code, "")
		}
		for _, signal := range []int{1, 2, 3, 6, 9, 11, 13, 14, 15, 24, 25} {
			o := testkit.Sh(t, who, fmt.Sprintf("kill -%d $$; sleep 100", signal))
			ended(t, o, result.Signaled, 128+signal, "")
			if o.Result.Signal != signal {
				t.Errorf("signal %d, want %d", o.Result.Signal, signal)
			}
		}
		// A shell whose child was killed exits with 137: no signal, no memory verdict.
		o := testkit.Sh(t, who, "sh -c 'kill -KILL $$'; exit $?")
		ended(t, o, result.Exited, 137, "")
		if o.Result.Signal != 0 || o.Result.OOMKills != 0 {
			t.Errorf("signal %d, oom_kills %d", o.Result.Signal, o.Result.OOMKills)
		}
	})
}

// Nothing that the program sends reaches init; killing all others kills them.
// killInit sends init a signal. Landlock may refuse it; else the kernel drops it.
const killInit = "import os\ntry: os.kill(1, %d)\nexcept PermissionError: pass\nprint('alive')"

func TestKillAll(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		neighbour := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", "60s", "--", "sh", "-c", "echo up; read x; echo still up")
		neighbour.WaitLine("up")
		o := script(t, who, "B20.py", "-e I_AM_IN_A_SANDBOX=1 --pids-limit 16")
		ended(t, o, result.Exited, 4, "init survived\n")
		for signal := 1; signal <= 64; signal++ {
			if signal == 32 || signal == 33 { // the C library's own
				continue
			}
			o := testkit.Run(t, testkit.Opts{Who: who}, "--", "python3", "-c", fmt.Sprintf(killInit, signal))
			ended(t, o, result.Exited, 0, "alive\n")
		}
		ended(t, neighbour.Wait(), result.Exited, 0, "up\nstill up\n")
	})
}
