package limits

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// checkMemory wants the verdict and, where a cgroup holds the limit, a peak
// that it never let by.
func checkMemory(t *testing.T, who testkit.Who, o testkit.Output, limit int64) {
	t.Helper()
	ended(t, o, result.Memory, 137, "")
	held(t, o, "memory", limit, by(who, result.ByWatchdog))
	if o.Result.Signal != 9 {
		t.Errorf("signal %d", o.Result.Signal)
	}
	peak := o.Result.MemoryPeakBytes
	if !who.Limited() {
		if peak <= limit {
			t.Errorf("memory_peak_bytes %d, want what the watchdog saw, above %d", peak, limit)
		}
		return
	}
	if o.Result.OOMKills < 1 || peak > limit || peak < limit*9/10 {
		t.Errorf("oom_kills %d, memory_peak_bytes %d, limit %d", o.Result.OOMKills, peak, limit)
	}
	kernelSays(t, who, o, file("memory.limit_in_bytes", "memory.max"), strconv.FormatInt(limit, 10))
	if kernelV2() {
		kernelSays(t, who, o, "memory.swap.max", "0")
		kernelSays(t, who, o, "memory.oom.group", "1")
	}
}

// One process over the limit, from the least that a program can start in.
func TestMemory(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, mb := range []int64{8, 64, 256} {
			flags := []string{"--memory", strconv.FormatInt(mb, 10) + "m", "--timeout", "60s"}
			o := testkit.RunC(t, testkit.Opts{Who: who}, flags, source(t, "B10.c"))
			checkMemory(t, who, o, mb<<20)
		}
	})
}

// The sum over all processes counts, and all of them end: a parent that would
// outlive its killed children does not.
func TestMemoryOfTheTree(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		checkMemory(t, who, script(t, who, "B09.py", "--memory 256m --pids-limit 32 --timeout 60s"), 256<<20)
		o := hog(t, who, "--memory 64m --timeout 60s", "family 8 20")
		if strings.Contains(o.Stdout, "outlived") {
			t.Errorf("the parent lived on: %q", o.Stdout)
		}
		o.Stdout = ""
		checkMemory(t, who, o, 64<<20)
	})
}

// Whatever memory is held in counts, the scratch's files as well.
func TestMemoryKinds(t *testing.T) {
	for _, kind := range []string{
		"anon", "shared", "sysv", "file", "deleted",
		"memfd",  // held by a descriptor only
		"tables", // page tables that lead to nothing
	} {
		t.Run(kind, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				const flags = "--memory 48m --disk 200m --timeout 60s -e HOLD=1"
				o := hog(t, who, flags, "memory "+kind+" 100")
				// The watchdog may come after the line; the kernel never does.
				if !who.Limited() {
					o.Stdout = strings.TrimPrefix(o.Stdout, "held 100\n")
				}
				checkMemory(t, who, o, 48<<20)
				o = hog(t, who, "--memory 48m --disk 200m --timeout 60s", "memory "+kind+" 20")
				ended(t, o, result.Exited, 0, "held 20\n")
				if o.Result.OOMKills != 0 {
					t.Errorf("oom_kills %d", o.Result.OOMKills)
				}
			})
		})
	}
}

// A process that does not let its descriptors be seen could hold any amount by
// them: where no cgroup counts, it ends the run at once.
func TestMemoryHidden(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--memory 48m --disk 200m --timeout 60s -e HOLD=1", "memory hidden 100")
		if !who.Limited() {
			o.Stdout = strings.TrimPrefix(o.Stdout, "held 100\n")
		}
		ended(t, o, result.Memory, 137, "")
	})
}

// Every program cannot be seen for a moment when it starts: that is no verdict.
func TestMemoryHiddenAtTheStart(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		ended(t, hog(t, who, "--memory 48m --timeout 60s", "memory starts 1"), result.Exited, 0, "held 1\n")
	})
}

// Half in the scratch and half in memory is too much together.
func TestMemoryAndScratch(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const both = "head -c 40m /dev/zero >/tmp/x; echo written; exec " + testkit.Inside + " memory anon 40"
		hog := testkit.C(t, source(t, "hog.c"))
		o := testkit.Sh(t, who, both, "--memory", "64m", "--disk", "60m", "--timeout", "60s", "-e", "HOLD=1", "-v", hog+":"+testkit.Inside)
		o.Stdout = strings.TrimPrefix(o.Stdout, "written\n")
		if !who.Limited() {
			o.Stdout = strings.TrimPrefix(o.Stdout, "held 40\n")
		}
		checkMemory(t, who, o, 64<<20)
	})
}

// What processes share counts once: a parent of 60 MB with many children.
func TestMemoryShared(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--memory 128m --timeout 60s", "share 60 12")
		ended(t, o, result.Exited, 0, "shared 60\n")
	})
}

// What waits in the buffers of sockets is memory too: on v1 it has a limit of
// its own, a fourth of the other.
func TestSocketBuffers(t *testing.T) {
	testkit.Requires(t, "root", "cgroup")
	const limit = 64 << 20
	for _, kind := range []string{"tcp", "udp"} {
		o := script(t, testkit.AsRoot(t), "sockets.py", "--memory 64m --timeout 20s", kind)
		if kernelV2() {
			// What a packet on its way needs is never refused.
			if o.Result.MemoryPeakBytes > limit*5/4 || o.Result.MemoryPeakBytes < 8<<20 {
				t.Errorf("%s: memory_peak_bytes %d of %d", kind, o.Result.MemoryPeakBytes, limit)
			}
			continue
		}
		var tried, held int64
		if n, err := fmt.Sscanf(o.Stdout, "tried %d\nheld %d\n", &tried, &held); n != 2 {
			t.Fatalf("%s: exit %d, %q, %q: %v", kind, o.Exit, o.Stdout, o.Stderr, err)
		}
		// The kernel lets some pass that it cannot refuse any more.
		if tried < limit || held < limit/8 || held > limit/2 {
			t.Errorf("%s: %d bytes in buffers of %d that were tried, want about %d", kind, held, tried, limit/4)
		}
		kernelSays(t, testkit.AsRoot(t), o, "memory.kmem.tcp.limit_in_bytes", strconv.FormatInt(limit/4, 10))
	}
}
