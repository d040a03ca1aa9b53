package limits

import (
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// kernel runs testdata/kernel.c.
func kernel(t *testing.T, who testkit.Who, flags, args string) testkit.Output {
	t.Helper()
	return testkit.RunC(t, testkit.Opts{Who: who}, strings.Fields(flags), source(t, "kernel.c"), strings.Fields(args)...)
}

// counted skips the test where no cgroup counts what the kernel holds.
func counted(t *testing.T, who testkit.Who) {
	t.Helper()
	if !who.Limited() {
		testkit.Skip(t, "a delegated cgroup", "none")
	}
}

// What the kernel holds for the program counts as the program's own memory.
func TestMemoryOfTheKernel(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		counted(t, who)
		for _, kind := range []string{
			"pipes", "unixes", // buffers
			"areas", "sparse", // what describes the address space
			"notify", "epolls", // events, and who waits for them
			"messages", "semaphores", "segments", // System V
		} {
			t.Run(kind, func(t *testing.T) {
				o := kernel(t, who, "--memory 24m --timeout 100s -e HOLD=1", kind+" 8")
				o.Stdout = "" // who is killed last may have said how far it came
				checkMemory(t, who, o, 24<<20)
			})
		}
	})
}

// Of some things there is never enough to pass the limit: each process of eight
// is refused more, and what they have counts.
func TestMemoryOfTheKernelIsBounded(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		counted(t, who)
		for _, c := range []struct {
			kind, why string // why: one of these
			least     int64  // KiB that were counted
		}{
			{"events", "EMFILE", 8 * 1000 / 5}, // a struct file is over 200 bytes
			{"timerfds", "EMFILE", 8 * 1000 / 5},
			{"timers", "EAGAIN", 0},           // 512 together
			{"dirs", "ENOSPC", 16 * 1000 / 2}, // an inode of tmpfs is over 700
			{"xattrs", "ENOSPC EOPNOTSUPP", 0},
			{"procs", "EMFILE", 8 * 1000 * 4}, // each has a buffer of a page
			{"filters", "ENOMEM", 0},
			{"absent", "0 ENOENT", 0}, // the kernel forgets names when it needs the memory
		} {
			t.Run(c.kind, func(t *testing.T) {
				o := kernel(t, who, "--memory 40m --timeout 100s", c.kind+" 8")
				ended(t, o, result.Exited, 0, o.Stdout)
				lines := strings.Split(strings.TrimSuffix(o.Stdout, "\n"), "\n")
				for _, line := range lines {
					f := strings.Fields(line)
					if len(f) != 3 || f[0] != c.kind || !slices.Contains(strings.Fields(c.why), f[2]) {
						t.Errorf("%q, want one of %s", line, c.why)
					}
				}
				if peak := o.Result.MemoryPeakBytes; len(lines) != 8 || o.Result.OOMKills != 0 || peak > 40<<20 || peak < c.least<<10 {
					t.Errorf("%d lines, oom_kills %d, memory_peak_bytes %d, want %d to %d", len(lines), o.Result.OOMKills, peak, c.least<<10, 40<<20)
				}
			})
		}
	})
}

// What the kernel charges to no cgroup is the host's memory all the same: it may
// take as much as the limit, and then the run ends.
func TestMemoryThatNoCgroupCounts(t *testing.T) {
	for _, kind := range []string{
		"corks",   // datagrams that are not finished
		"parted",  // the same, in sockets that are in no table
		"backlog", // connections that nobody accepts
		"reset",   // the same, in no table either
		"locks",
	} {
		t.Run(kind, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				o := kernel(t, who, "--memory 24m --timeout 100s -e HOLD=1", kind+" 2")
				o.Stdout = ""
				ended(t, o, result.Memory, 137, "")
				held(t, o, "memory", 24<<20, by(who, result.ByWatchdog))
				// On v2 what the other end had to send counts, and may be too much first.
				charged := kind == "backlog" && who.Limited() && kernelV2()
				if o.Result.Signal != 9 || o.Result.OOMKills != 0 && !charged {
					t.Errorf("signal %d, oom_kills %d", o.Result.Signal, o.Result.OOMKills)
				}
				// No cgroup has seen it; the watchdog has, or has run out of time.
				if peak := o.Result.MemoryPeakBytes; who.Limited() && peak > 24<<20 || !who.Limited() && peak == 0 {
					t.Errorf("memory_peak_bytes %d", peak)
				}
			})
		})
	}
}

// What would be the kernel's memory, or a table of the whole host, by an option of
// a socket cannot be had: not one.
func TestMemoryOfSocketOptions(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for kind, why := range map[string]string{
			"keys":    "ENOPROTOOPT", // of TCP
			"labels":  "ENOPROTOOPT", // of flows; neighbours would lack them
			"headers": "ENOPROTOOPT", // of datagrams
			"groups":  "ENODEV",      // also half a minute for the end of the killed
			"links":   "EAFNOSUPPORT",
			"errors":  "EAGAIN", // none was kept
		} {
			o := kernel(t, who, "--memory 24m --timeout 100s", kind+" 1")
			ended(t, o, result.Exited, 0, kind+" 0 "+why+"\n")
		}
	})
}

// The same things in numbers that programs have, but for locks of an open file,
// which could not be counted.
func TestMemoryThatNoCgroupCountsIsAllowed(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "modest.py", "--memory 64m --timeout 100s")
		ended(t, o, result.Exited, 0, "EINVAL\nlocks 2000\nconnections 200\nsockets 200\n")
	})
}
