package limits

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// weaker checks what the result says of a limit: nothing where a cgroup holds
// it, else the line of the table.
func weaker(t *testing.T, who testkit.Who, o testkit.Output, name string) {
	t.Helper()
	want := ""
	if !who.Limited() {
		want = result.Weaker(name)
		if want == "" {
			t.Errorf("%s: the table has no line", name)
		}
	}
	if got := o.Result.Limits[name].Weaker; got != want {
		t.Errorf("%s: the result says %q, want %q", name, got, want)
	}
}

// once runs something until it holds, a few times: what a busy host hides once is
// still there.
func once(t *testing.T, what string, try func() bool) {
	t.Helper()
	for range 5 {
		if try() {
			return
		}
	}
	t.Errorf("never in five tries: %s", what)
}

// The rows of "What is weaker then" in docs/DOCTOR.md: each says what still holds
// without a cgroup, and does what holds no longer. With a cgroup the same is held.

func TestWeakerMemory(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--memory 48m --timeout 60s -e HOLD=1", "memory anon 100")
		if !who.Limited() {
			o.Stdout = strings.TrimPrefix(o.Stdout, "held 100\n")
		}
		checkMemory(t, who, o, 48<<20)
		weaker(t, who, o, "memory")
		// Three times the limit in the buffers of sockets, which nobody sees.
		o = kernel(t, who, "--memory 16m --timeout 60s", "unixes 1")
		if who.Limited() {
			o.Stdout = ""
			checkMemory(t, who, o, 16<<20)
			return
		}
		f := strings.Fields(o.Stdout)
		ended(t, o, result.Exited, 0, o.Stdout)
		if len(f) != 3 {
			t.Fatalf("%q", o.Stdout)
		}
		if mb, err := strconv.Atoi(f[1]); err != nil || mb < 48 {
			t.Errorf("%s MB in buffers, want three times the limit of 16", f[1])
		}
	})
}

// A program that is spread over its memory holds what it has touched, and no huge
// pages for it: where a control group has the limit the kernel takes small ones
// when the huge are too much, and where the watchdog has it there are none.
func TestSparseMemory(t *testing.T) {
	if text, err := os.ReadFile("/proc/self/status"); err != nil || !strings.Contains(string(text), "\nTHP_enabled:\t1\n") {
		testkit.Skip(t, "huge pages", "a kernel or a test without them")
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.RunC(t, testkit.Opts{Who: who}, []string{"--memory", "64m"}, source(t, "sparse.c"))
		if who.Limited() {
			if o.Exit != 0 || !strings.HasPrefix(o.Stdout, "THP_enabled:\t1\n") {
				t.Errorf("exit %d, %q", o.Exit, o.Stdout)
			}
			return
		}
		ended(t, o, result.Exited, 0, "THP_enabled:\t0\nAnonHugePages:         0 kB\n")
	})
}

// rated asks for all CPUs, and then uses a fifth of a second of one.
const rated = `#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>
int main(void) {
    cpu_set_t set;
    struct timespec t = {0, 0};
    sched_getaffinity(0, sizeof set, &set);
    printf("%d", CPU_COUNT(&set));
    for (int i = 0; i < CPU_SETSIZE; i++) CPU_SET(i, &set);
    sched_setaffinity(0, sizeof set, &set);
    sched_getaffinity(0, sizeof set, &set);
    printf(" %d\n", CPU_COUNT(&set));
    while (t.tv_nsec < 200000000 && t.tv_sec == 0) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 0;
}
`

func TestWeakerCPUs(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if runtime.NumCPU() < 2 {
			testkit.Skip(t, "two CPUs", "one")
		}
		// At a tenth of a CPU a fifth of a second takes two seconds, less a period.
		const least = 1700
		run := func() testkit.Output {
			o := testkit.RunC(t, testkit.Opts{Who: who}, []string{"--cpus", "0.1", "--timeout", "60s"}, rated)
			if o.Result.Outcome != result.Exited || !strings.HasPrefix(o.Stdout, "1 ") {
				t.Fatalf("%s, %q: it should have begun on one CPU", o.Result.Outcome, o.Stdout)
			}
			weaker(t, who, o, "cpus")
			return o
		}
		if who.Limited() {
			if o := run(); o.Result.WallMS < least {
				t.Errorf("the rate was not held: %d ms", o.Result.WallMS)
			}
			return
		}
		once(t, "a rate that is passed, on all CPUs", func() bool {
			o := run()
			return o.Result.WallMS < least && o.Stdout == "1 "+strconv.Itoa(runtime.NumCPU())+"\n"
		})
	})
}

func TestWeakerPids(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--pids-limit 7 --timeout 60s", "forks")
		ended(t, o, result.Exited, 0, "tasks 7\n")
		weaker(t, who, o, "pids")
		if !who.Limited() && o.Result.PidsPeak != 0 {
			t.Errorf("pids_peak %d, which nobody counts", o.Result.PidsPeak)
		}
	})
}

// Nothing stands in for a rate of a disk.
func TestWeakerIO(t *testing.T) {
	who := unlimited(t)
	testkit.Requires(t, "root", "python3")
	dir, node := onDisk(t)
	path := filepath.Join(dir, "io.py")
	if err := os.WriteFile(path, []byte(source(t, "io.py")), 0o644); err != nil {
		t.Fatal(err)
	}
	once(t, "a rate that is passed", func() bool {
		uncached(t, filepath.Join(dir, "read"))
		o := testkit.Run(t, testkit.Opts{Who: who}, "--allow-degraded", "io", "--device-read-bps", node+":1m", "-v", dir+":/data", "--timeout", "100s", path, "read", "/data/read")
		ended(t, o, result.Exited, 0, "3145728\n")
		held(t, o, "io", 1, result.ByNone)
		weaker(t, who, o, "io")
		return o.Result.WallMS < 1500 // see TestIOThrottles
	})
}

// CPU time of the whole tree is looked at, and counted by a cgroup where there is
// any.
func TestWeakerCPUTime(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Sh(t, who, "while :; do :; done", "--cpu-time", "200ms", "--timeout", "60s")
		ended(t, o, result.CPUTime, 124, "")
		weaker(t, who, o, "cpu_time")
	})
}
