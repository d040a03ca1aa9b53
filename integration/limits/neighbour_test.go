package limits

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// start starts a program of testdata, with a stdin that ends when the test does.
func start(t *testing.T, who testkit.Who, flags, name, args string) *testkit.Process {
	t.Helper()
	list := append([]string{"-v", testkit.C(t, source(t, name)) + ":" + testkit.Inside, "--timeout", "110s"}, strings.Fields(flags)...)
	list = append(list, "--", testkit.Inside)
	p, _ := testkit.Hold(t, testkit.Opts{Who: who}, append(list, strings.Fields(args)...)...)
	return p
}

// oneCPU keeps what the test starts on one CPU, so that they compete for it.
func oneCPU(t *testing.T) {
	t.Helper()
	var all, one unix.CPUSet
	runtime.LockOSThread() // a child has the affinity of the thread that starts it
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
}

// cpuUsed is the CPU time in ms that the kernel has counted for a run so far.
func cpuUsed(t *testing.T, p *testkit.Process) int64 {
	t.Helper()
	for _, dir := range testkit.CgroupsOf(p.PID()) {
		if text, err := os.ReadFile(dir + "/cpuacct.usage"); err == nil {
			return number(t, string(text)) / 1_000_000
		}
		if text, err := os.ReadFile(dir + "/box/cpu.stat"); err == nil {
			return number(t, strings.TrimPrefix(string(text), "usage_usec ")) / 1000
		}
	}
	return 0 // not started yet
}

// A neighbour of a hostile program has its half of a CPU, however many processes
// the other has: what is compared is what the kernel has given to each of the two
// in the same time, so the machine's load does not matter.
func TestNeighbourKeepsItsShare(t *testing.T) {
	testkit.Requires(t, "root", "cgroup")
	who, had := testkit.AsRoot(t), int64(1000)
	oneCPU(t)
	crowd := start(t, who, "--cpus 2 --pids-limit 64", "hog.c", "burners 40")
	testkit.Eventually(t, "the crowd has begun", func() bool { return cpuUsed(t, crowd) > 200 })
	one := start(t, who, "--cpus 2", "burn.c", fmt.Sprint("share ", had))
	one.WaitLine("begin")
	before := cpuUsed(t, crowd)
	one.WaitLine("end")
	// One to one is fair, and forty to one is what it would be without groups.
	if took := cpuUsed(t, crowd) - before; took > 4*had || took < had/4 {
		t.Errorf("the crowd had %d ms of CPU while its neighbour had %d", took, had)
	}
	crowd.Kill()
}

// Without a cgroup a crowd is made nice, and cannot take it back: forty that run
// weigh as much as four. A single program is not, nor is a crowd in a cgroup.
func TestCrowdIsNice(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		own, err := exec.Command("nice").Output()
		if err != nil {
			t.Fatal(err)
		}
		was, want := number(t, string(own)), int64(11)
		o := testkit.Sh(t, who, "exec nice", "--timeout", "60s")
		ended(t, o, result.Exited, 0, fmt.Sprintln(was))
		crowd := testkit.Inside + ` burners 40 & until [ "$(nice)" -ge 11 ]; do :; done; nice -n -5 nice 2>/dev/null`
		if who.Limited() {
			crowd, want = testkit.Inside+" burners 40 & "+testkit.Inside+" burn 20; nice", was
		}
		prog := testkit.C(t, source(t, "hog.c")) + ":" + testkit.Inside
		o = testkit.Run(t, testkit.Opts{Who: who}, "-v", prog, "--pids-limit", "64", "--timeout", "60s", "--", "sh", "-c", crowd)
		lines := strings.Fields(o.Stdout)
		if o.Result.Outcome != result.Exited || len(lines) == 0 {
			t.Fatalf("%s, stdout %q, stderr %q", o.Result.Outcome, o.Stdout, o.Stderr)
		}
		now := number(t, lines[len(lines)-1])
		if who.Limited() && now != was || now < want {
			t.Errorf("a nice value of %d inside, want %d", now, max(want, was))
		}
	})
}

// While one runs a fork bomb, its neighbour can make all the processes that it
// may, and the host can too.
func TestNeighbourOfAForkBomb(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		bomb := start(t, who, "--pids-limit 64", "burn.c", "bomb")
		bomb.WaitLine("bomb")
		ended(t, hog(t, who, "--pids-limit 64 --timeout 100s", "forks"), result.Exited, 0, "tasks 64\n")
		ended(t, hog(t, who, "--pids-limit 8 --timeout 100s", "churn 100"), result.Exited, 0, "churned 100\n")
		if err := exec.Command("true").Run(); err != nil {
			t.Error(err)
		}
		bomb.Signal(os.Interrupt)
		o := bomb.Wait()
		if o.Result.Outcome != result.Canceled || o.Exit != 130 {
			t.Errorf("the bomb: %s, exit %d", o.Result.Outcome, o.Exit)
		}
		if peak := o.Result.PidsPeak; who.Limited() && peak != 0 && peak != 64 { // 0: before Linux 6.1
			t.Errorf("pids_peak %d", peak)
		}
	})
}

// Two at once of the same caller: what the one has used up the other still has.
func TestNeighbourSharesNoLimit(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const flags = "--memory 64m --disk 2m --open-files 100 --output-limit 1000 --timeout 100s"
		full := "head -c 4m /dev/zero >/tmp/x 2>/dev/null; head -c 5000 /dev/zero >&2; " +
			testkit.Inside + " opens; HOLD=1 exec " + testkit.Inside + " memory anon 45"
		prog := testkit.C(t, source(t, "hog.c")) + ":" + testkit.Inside
		list := append(strings.Fields(flags), "-v", prog, "--", "sh", "-c", full)
		first := testkit.Start(t, testkit.Opts{Who: who}, list...)
		first.WaitLine("held 45")
		ended(t, hog(t, who, flags, "memory anon 45"), result.Exited, 0, "held 45\n")
		ended(t, hog(t, who, flags, "opens"), result.Exited, 0, "open 100\n")
		o := hog(t, who, flags, "fill /tmp/x 1")
		after := last(t, o, "No space left on device after ")
		if after > 2<<20 || after < 2<<20-64<<10 {
			t.Errorf("%d bytes fit into 2 MiB", after)
		}
		o = testkit.Sh(t, who, "head -c 1000 /dev/zero", strings.Fields(flags)...)
		stream(t, "stdout", o.Result.Stdout, 1000, 1000)
		first.Kill()
	})
}

// What a sandbox holds of the host's table of open files is bounded by its own
// two limits.
func TestOpenFilesOfTheTree(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const pids, files = 8, 50
		o := testkit.RunC(t, testkit.Opts{Who: who}, strings.Fields("--pids-limit 8 --open-files 50 --timeout 60s"), `#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    int p[2]; long children = 0; char c;
    if (pipe(p)) return 1;
    for (;;) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (pid == 0) {
            while (open("/dev/null", O_RDONLY) >= 0) if (write(p[1], "x", 1) != 1) return 1;
            if (write(p[1], "e", 1) != 1) return 1;
            for (;;) pause();
        }
        children++;
    }
    long opened = 0, ended = 0;
    while (ended < children && read(p[0], &c, 1) == 1) c == 'x' ? opened++ : ended++;
    printf("%ld children, %ld files\n", children, opened);
    return 0;
}
`)
		// 0, 1, 2 and the two ends of the pipe are inherited.
		want := strconv.Itoa(pids-1) + " children, " + strconv.Itoa((pids-1)*(files-5)) + " files\n"
		ended(t, o, result.Exited, 0, want)
	})
}
