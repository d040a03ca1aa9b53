package limits

import (
	"fmt"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// The CPU time of the whole tree counts, however it is spread. The wall clock's
// limit is far away, so that it cannot be what ended the run.
func TestCPUTime(t *testing.T) {
	for _, c := range []string{
		"spinners 1", // the program itself
		"spinners 4", // its threads
		"burners 3",  // double-forked daemons whose parent sleeps
		"brief 5",    // children far below any limit of one process
		"ignored 30", // children that nobody waits for
	} {
		t.Run(strings.Fields(c)[0]+strings.Fields(c)[1], func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				o := hog(t, who, "--cpu-time 300ms --cpus 2 --timeout 100s", c)
				ended(t, o, result.CPUTime, 124, "")
				held(t, o, "cpu_time", 300, result.ByWatchdog)
				if o.Result.CPUMS < 300 || o.Result.Signal != 9 {
					t.Errorf("cpu_ms %d, signal %d", o.Result.CPUMS, o.Result.Signal)
				}
			})
		})
	}
}

// Nor does it matter how the time is had: by processes that end before they can
// be looked at, whoever is to wait for them, in the kernel, at the lowest
// priority, in handlers of signals.
func TestCPUTimeWays(t *testing.T) {
	for _, way := range []string{"zombies", "parents", "siblings", "threads", "leaderless", "system", "idle", "reexec", "vforks", "timers"} {
		t.Run(way, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				o := testkit.RunC(t, testkit.Opts{Who: who}, strings.Fields("--cpu-time 300ms --cpus 2 --timeout 100s"), source(t, "burn.c"), way)
				ended(t, o, result.CPUTime, 124, "")
				held(t, o, "cpu_time", 300, result.ByWatchdog)
				if o.Result.CPUMS < 300 || o.Result.Signal != 9 {
					t.Errorf("cpu_ms %d, signal %d", o.Result.CPUMS, o.Result.Signal)
				}
			})
		})
	}
}

func TestCPUTimeOfChildren(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		// An emulated CPU may need a second for python to start.
		o := script(t, who, "B08.py", "--cpu-time 2s --timeout 100s --pids-limit 32 --memory 128m -e SECS=90")
		ended(t, o, result.CPUTime, 124, "burning\n")
	})
}

func TestCPUTimeBelow(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--cpu-time 5s --timeout 100s", "burn 300")
		ended(t, o, result.Exited, 0, "burnt 300\n")
		if o.Result.CPUMS < 300 || o.Result.CPUMS > 3000 {
			t.Errorf("cpu_ms %d of a program that burnt 300", o.Result.CPUMS)
		}
	})
}

// Each run counts for itself, one after the other and at once.
func TestCPUTimeNotCarriedOver(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		// Two runs together are past the limit, and one is far enough below it for a
		// slow machine, where starting the program is half a second's work.
		const flags, op = "--cpu-time 1500ms --memory 128m --timeout 100s", "burn 800"
		for range 3 {
			ended(t, hog(t, who, flags, op), result.Exited, 0, "burnt 800\n")
		}
		var all []*testkit.Process
		for range 3 {
			all = append(all, startHog(t, who, flags, op))
		}
		for _, p := range all {
			ended(t, p.Wait(), result.Exited, 0, "burnt 800\n")
		}
	})
}

// The rate: two processes that would use two CPUs get a quarter of one.
func TestCPURate(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if !who.Limited() {
			o := hog(t, who, "--cpus 0.25", "burn 10")
			held(t, o, "cpus", 250, result.ByNone)
			return
		}
		stat := file("/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu.stat")
		// A busy host may give them less than that for a while, and nobody is held back.
		o := testkit.Sh(t, who, "while :; do :; done & while :; do :; done & sleep 2; "+
			"until n=$(grep nr_throttled "+stat+") && [ ${n#* } -ge 2 ]; do sleep 0.1; done; echo $n", "--cpus", "0.25", "--timeout", "60s")
		if n := number(t, strings.TrimPrefix(o.Stdout, "nr_throttled ")); n < 2 {
			t.Errorf("throttled in %d periods\n%s", n, o.Stderr)
		}
		held(t, o, "cpus", 250, by(who, result.ByNone))
		kernelSays(t, who, o, file("cpu.cfs_quota_us", "cpu.max"), file("25000", "25000 100000"))
		// A quarter, and half as much again for what was under way at the end: a virtual
		// CPU that the host held up has that time counted at once. Without the limit
		// it is the whole of a CPU at least.
		if most := o.Result.WallMS * 3 / 8; o.Result.CPUMS > most {
			t.Errorf("cpu_ms %d in %d ms, want at most %d", o.Result.CPUMS, o.Result.WallMS, most)
		}
	})
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("no number in %q: %v", text, err)
	}
	return n
}
