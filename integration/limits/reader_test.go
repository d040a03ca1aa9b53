package limits

import (
	"io"
	"os"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// spout fills whatever takes its output, on both streams, in a shell that stays.
const spout = "cat /dev/zero >&2 & cat /dev/zero; :"

// toPipe starts a run whose streams go into a pipe that nobody reads yet.
func toPipe(t *testing.T, who testkit.Who, args ...string) (*testkit.Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p := testkit.Start(t, testkit.Opts{Who: who, Stdout: w, Stderr: w}, args...)
	w.Close()
	return p, r
}

// A reader that reads nothing does not stop the clock: the program ends at its
// time. When the reader wakes up it has everything, and the verdict is the clock's.
func TestReaderIsLate(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		m := mark(t)
		p, r := toPipe(t, who, "--timeout", "3s", "--", "sh", "-c", spout, m)
		first := make([]byte, 1) // of either stream
		if _, err := io.ReadFull(r, first); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the program is gone", func() bool { return len(inside(m)) == 0 })
		rest, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		o := p.Wait()
		if o.Result.Outcome != result.Timeout || o.Exit != 124 || o.Result.Error != "" {
			t.Errorf("%s, exit %d, %q", o.Result.Outcome, o.Exit, o.Result.Error)
		}
		if kept := o.Result.Stdout.Kept + o.Result.Stderr.Kept; kept != int64(len(first)+len(rest)) {
			t.Errorf("%d bytes came, the result says %d", len(first)+len(rest), kept)
		}
		if o.Result.WallMS < 3000 {
			t.Errorf("ended after %d ms", o.Result.WallMS)
		}
	})
}

// inside lists the processes of a run: those that are not sandglass.
func inside(marker string) (list []string) {
	for _, p := range testkit.Processes(marker) {
		if !strings.Contains(p, " run ") {
			list = append(list, p)
		}
	}
	return list
}

// A reader that never reads again does not keep the run from ending either. The
// result has the program's verdict, and the exit code says that output is lost.
func TestReaderIsStuck(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		type run struct {
			timeout, script string
			outcome         result.Outcome
			code            int
			*testkit.Process
		}
		both := []run{
			{"5s", spout, result.Timeout, 124, nil},
			{"60s", "head -c 60000 /dev/zero >&2; head -c 60000 /dev/zero; exit 3", result.Exited, 3, nil},
		}
		for i := range both {
			both[i].Process, _ = toPipe(t, who, "--timeout", both[i].timeout, "--", "sh", "-c", both[i].script)
		}
		for _, c := range both {
			o := c.Wait()
			if o.Result.Outcome != c.outcome || o.Result.ExitCode != c.code || o.Exit != 125 {
				t.Errorf("%s, exit code %d, exit %d", o.Result.Outcome, o.Result.ExitCode, o.Exit)
			}
			if !strings.Contains(o.Result.Error, "writing std") || !strings.HasSuffix(o.Result.Error, "the reader takes nothing any more") {
				t.Errorf("%q", o.Result.Error)
			}
			// The wait for the reader is no time of the program's.
			if o.Result.WallMS >= 10_000 {
				t.Errorf("wall_ms %d of a program that had less than ten seconds", o.Result.WallMS)
			}
			if groups := testkit.CgroupsLeft(t, o.PID); len(groups) > 0 {
				t.Errorf("left: %q", groups)
			}
		}
	})
}

// Some other process that shares the caller's descriptor makes it non-blocking
// while the program writes: no byte is lost.
func TestReaderOfANonBlockingPipe(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		const size = 1 << 20
		p := testkit.Start(t, testkit.Opts{Who: who, Stdout: w}, "--timeout", "60s", "--", "sh", "-c", "echo go; exec head -c 1048573 /dev/zero")
		buf := make([]byte, 3)
		if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "go\n" {
			t.Fatalf("%q, %v", buf, err)
		}
		fd := int(w.Fd()) // once: it makes the description blocking again
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		// Full before anybody reads, so that a write would not wait.
		testkit.Eventually(t, "the pipe is full", func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0)
			return err == nil && n == 0
		})
		w.Close()
		if rest, err := io.ReadAll(r); err != nil || len(rest) != size-3 {
			t.Errorf("%d bytes came: %v", len(rest), err)
		}
		o := p.Wait()
		if o.Exit != 0 || o.Result.Error != "" {
			t.Errorf("exit %d, %q", o.Exit, o.Result.Error)
		}
		stream(t, "stdout", o.Result.Stdout, size, size)
	})
}

// A stdin that never ends and that nobody reads neither keeps the run open nor
// piles up: the program's end is the end.
func TestStdinIsNeverRead(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		zero, err := os.Open("/dev/zero")
		if err != nil {
			t.Fatal(err)
		}
		defer zero.Close()
		o := testkit.Run(t, testkit.Opts{Who: who, Stdin: zero}, "-i", "--timeout", "60s", "--", "sh", "-c", "exec <&-; echo out")
		ended(t, o, result.Exited, 0, "out\n")
		o = testkit.Run(t, testkit.Opts{Who: who, Stdin: zero}, "-i", "--timeout", "1s", "--", "sleep", "600")
		ended(t, o, result.Timeout, 124, "")
	})
}
