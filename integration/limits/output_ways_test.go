package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// Whichever way a byte comes by, it counts, and the caller's own descriptor
// stays as it was.
func TestOutputWays(t *testing.T) {
	for _, way := range []string{
		"bytes",                     // a call for each
		"splice", "sendfile", "tee", // pages of files and other pipes
		"device", "self", "thread", // opened anew
		"large", "packets", "nonblock", // the pipe made larger, other, not waiting
		"moved",                     // stdout closed, and its number with it
		"daemon", "other", "passed", // by other processes, by way of /proc or a socket
	} {
		t.Run(way, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				for _, n := range []int64{1000, 1001, 150_000} {
					o := outputRun(t, who, "--output-limit 1000 --timeout 60s", way, itoa(n))
					ended(t, o, result.Exited, 0, strings.Repeat("o", 1000))
					stream(t, "stdout", o.Result.Stdout, n, 1000)
				}
			})
		})
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := outputRun(t, who, "", "vmsplice", "1000")
		ended(t, o, result.Exited, 0, "ENOSYS")
	})
}

// outputRun runs testdata/output.c with a pipe as stdout and looks at its flags.
func outputRun(t *testing.T, who testkit.Who, flags string, args ...string) testkit.Output {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETFL, 0); err != nil {
		t.Fatal(err)
	}
	before := [2]int{fcntl(t, w, unix.F_GETFL), fcntl(t, w, unix.F_GETPIPE_SZ)}
	o := testkit.RunC(t, testkit.Opts{Who: who, Stdout: w}, strings.Fields(flags), source(t, "output.c"), args...)
	if after := [2]int{fcntl(t, w, unix.F_GETFL), fcntl(t, w, unix.F_GETPIPE_SZ)}; after != before {
		t.Errorf("flags and size of the caller's pipe are %v, were %v", after, before)
	}
	buf := make([]byte, 64<<10)
	if o.Result.Stdout.Kept > 0 {
		n, err := r.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		o.Stdout = string(buf[:n])
	}
	return o
}

func fcntl(t *testing.T, f *os.File, cmd int) int {
	t.Helper()
	n, err := unix.FcntlInt(f.Fd(), cmd, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A gigabyte on each stream at once, from pages that the program does not copy:
// the supervisor does not either, and needs no more memory for it.
func TestOutputFloodOfPages(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir, prog := everyones(t), testkit.C(t, source(t, "output.c"))
		p, release := testkit.Hold(t, testkit.Opts{Who: who}, "-v", prog+":"+testkit.Inside, "-v", dir+":/m:rw",
			"--output-limit", "1m", "--timeout", "280s", "--", testkit.Inside, "flood", strconv.Itoa(1<<30), "/m/done")
		p.WaitLine("flood")
		testkit.Eventually(t, "the flood is over", func() bool {
			_, err := os.Stat(filepath.Join(dir, "done"))
			return err == nil || zombie(p.PID())
		})
		if zombie(p.PID()) {
			o := p.Wait()
			t.Fatalf("ended by itself: %s, exit %d, %q, %+v, %+v", o.Result.Outcome, o.Exit, o.Result.Error, o.Result.Stdout, o.Result.Stderr)
		}
		read := figure(t, p.PID(), "io", "rchar: %d")
		peak := figure(t, p.PID(), "status", "VmHWM: %d kB")
		release()
		o := p.Wait()
		if o.Result.Outcome != result.Exited || o.Exit != 0 || o.Stdout != "flood\n"+strings.Repeat("o", 1<<20-6) {
			t.Errorf("%s, exit %d, %d bytes of stdout", o.Result.Outcome, o.Exit, len(o.Stdout))
		}
		stream(t, "stdout", o.Result.Stdout, 1<<30+6, 1<<20)
		stream(t, "stderr", o.Result.Stderr, 1<<30, 1<<20)
		if read > 16<<20 {
			t.Errorf("the supervisor has read %d bytes", read)
		}
		if peak > 32<<10 {
			t.Errorf("the supervisor has taken %d kB", peak)
		}
	})
}

// zombie says that a run has ended, which nobody has waited for yet.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(text), "\nState:\tZ")
}

// figure reads one number of /proc/PID/FILE.
func figure(t *testing.T, pid int, file, format string) (n int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, format, &n); err == nil {
			return n
		}
	}
	t.Fatalf("no %q in %s", format, text)
	return 0
}
