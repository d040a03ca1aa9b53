package leftovers

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// envClock says that the clock is a test machine's own and may be set.
const envClock = "SANDGLASS_TEST_CLOCK"

// step sets the clock of the wall forward, or back.
func step(t *testing.T, by time.Duration) {
	t.Helper()
	now := time.Now().Round(0).Add(by) // of the wall alone, which Sub then compares
	ts := unix.NsecToTimespec(now.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		t.Fatal(err)
	}
	if off := time.Now().Round(0).Sub(now).Round(time.Hour); off != 0 {
		t.Fatalf("the clock is %v from where it was set", off)
	}
}

// A clock that jumps neither ends a run before its time nor lets it go on, and
// shows in no figure.
func TestClockThatJumps(t *testing.T) {
	if os.Getenv(envClock) == "" {
		testkit.Skip(t, "a clock that may be set", "the host's")
	}
	both(t, func(t *testing.T, who testkit.Who) {
		const day = 24 * time.Hour
		work := testkit.Dir(t)
		if err := os.Chown(work, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
		before := look(t, work)
		for _, by := range []time.Duration{day, -2 * day, day} {
			in, release, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			p := testkit.Start(t, testkit.Opts{Who: who, Stdin: in}, "--timeout", "600s", "--cpu-time", "300s", "--out", work, "-i", "--", "sh", "-c", busy+"echo ready; read x; exit 4")
			limited := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", "8s", "--", "sh", "-c", busy+"echo ready; sleep 1000")
			p.WaitLine("ready")
			limited.WaitLine("ready")
			step(t, by)
			release.Close()
			in.Close()
			for _, r := range []*testkit.Process{p, limited} {
				o := r.Wait()
				if r == p && (o.Exit != 4 || o.Result.Outcome != result.Exited) || r == limited && (o.Exit != 124 || o.Result.Outcome != result.Timeout) {
					t.Errorf("by %v: exit %d, outcome %s, %s", by, o.Exit, o.Result.Outcome, o.Stderr)
				}
				if o.Result.WallMS < 0 || o.Result.WallMS > (10*time.Minute).Milliseconds() || r == limited && o.Result.WallMS < 8000 {
					t.Errorf("by %v: %d ms", by, o.Result.WallMS)
				}
			}
			nothing(t, before, p.PID(), work)
			nothing(t, before, limited.PID(), work)
		}
	})
}
