package limits

import (
	"os"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// timeout(1) and shells send a signal to the process and again to its group: a
// supervisor that is told twice ends the sandbox, says so, and leaves nothing.
func TestSignalledTwice(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
			m := mark(t)
			p := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", "60s", "--", "sh", "-c", "echo up; sleep 1000; :", m)
			p.WaitLine("up")
			p.Signal(s)
			syscall.Kill(p.PID(), s.(syscall.Signal)) // it may have ended by now
			o := p.Wait()
			ended(t, o, result.Canceled, 128+int(s.(syscall.Signal)), "up\n")
			nobodyLeft(t, m)
			if left := testkit.CgroupsLeft(t, o.PID); len(left) > 0 {
				t.Errorf("%v: cgroups are left: %q", s, left)
			}
		}
	})
}
