package limits

import (
	"fmt"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// tree runs testdata/tree.c.
func tree(t *testing.T, who testkit.Who, flags, args string) testkit.Output {
	t.Helper()
	return testkit.RunC(t, testkit.Opts{Who: who}, strings.Fields(flags), source(t, "tree.c"), strings.Fields(args)...)
}

// timedOut checks a run that only the clock could end.
func timedOut(t *testing.T, o testkit.Output, ms int64, stdout string) {
	t.Helper()
	ended(t, o, result.Timeout, 124, stdout)
	held(t, o, "timeout", ms, result.ByClock)
	if o.Result.WallMS < ms || o.Result.Signal != 9 || o.Result.OOMKills != 0 {
		t.Errorf("wall_ms %d, signal %d, oom_kills %d", o.Result.WallMS, o.Result.Signal, o.Result.OOMKills)
	}
}

// Threads live on without the first one, which is then a zombie: each counts,
// the clock ends them, and so does the memory that only they have.
func TestThreadsWithoutTheFirst(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		// So long that a slow machine has made all twenty by then.
		o := tree(t, who, "--timeout 3s --pids-limit 20", "leaderless 1000 0")
		timedOut(t, o, 3000, "")
		if who.Limited() && o.Result.PidsPeak != 0 && o.Result.PidsPeak != 20 { // 0: before Linux 6.1
			t.Errorf("pids_peak %d, want 20", o.Result.PidsPeak)
		}
		checkMemory(t, who, tree(t, who, "--memory 48m --timeout 60s", "leaderless 1 100"), 48<<20)
	})
}

// Threads that each live for a moment only have the memory of all.
func TestThreadsInARelay(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		checkMemory(t, who, tree(t, who, "--memory 48m --timeout 60s", "relay 100"), 48<<20)
		// The kernel frees what it had for threads that are gone when it comes to it, later on a busy host.
		timedOut(t, tree(t, who, "--memory 96m --timeout 1s", "relay 20"), 1000, "")
	})
}

// A thread can have descriptors that the others do not see.
func TestThreadWithDescriptorsOfItsOwn(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		checkMemory(t, who, tree(t, who, "--memory 48m --timeout 60s --disk 200m", "own 100"), 48<<20)
		timedOut(t, tree(t, who, "--memory 48m --timeout 1s --disk 200m", "own 20"), 1000, "")
	})
}

// The parent of vfork(2) waits for its child in a state that only SIGKILL ends,
// and both have one memory, which counts once.
func TestVfork(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		timedOut(t, tree(t, who, "--timeout 1s", "vforked 1 -1"), 1000, "")
		o := tree(t, who, "--memory 100m --timeout 60s", "vforked 60 500")
		ended(t, o, result.Exited, 0, "shared 60\n")
		if o.Result.OOMKills != 0 || o.Result.MemoryPeakBytes > 100<<20 {
			t.Errorf("oom_kills %d, memory_peak_bytes %d", o.Result.OOMKills, o.Result.MemoryPeakBytes)
		}
	})
}

// A stdout that is in nobody's hands, but on its way in a cycle of sockets, does
// not keep the run open.
func TestStdoutOnItsWay(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		ended(t, tree(t, who, "--timeout 60s", "cycle"), result.Exited, 0, "sent\n")
	})
}

// Children that send no SIGCHLD, and those that are made init's at once, are
// reaped like all others: none of them counts for longer than it lives.
func TestOddChildren(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		ended(t, tree(t, who, "--pids-limit 16 --timeout 60s", "odd 200"), result.Exited, 0, "odd 200\n")
	})
}

// As many as the limit lets be, in sessions of their own, half of them stopped,
// all of them deaf: the clock ends them together.
func TestTimeoutOfMany(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, n := range []int{64, 500} {
			// So long that a slow machine has made them all by then.
			o := tree(t, who, fmt.Sprintf("--timeout 8s --pids-limit %d", n), "many")
			timedOut(t, o, 8000, fmt.Sprintf("many %d\n", n))
			if left := testkit.CgroupsLeft(t, o.PID); len(left) > 0 {
				t.Errorf("cgroups are left: %q", left)
			}
		}
	})
}
