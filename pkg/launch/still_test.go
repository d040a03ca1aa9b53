package launch

import (
	"fmt"
	"io"
	"os/exec"
	"testing"

	"sandglass/internal/testkit"
)

// shellTree is a shell that runs script, after which it waits for what is in the
// background. Those read 3; in writes to it, and out has what they say.
func shellTree(t *testing.T, script string) (pid int, in io.WriteCloser, out io.Reader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec 3<&0; "+script+" echo; wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	said(t, out)
	return cmd.Process.Pid, in, out
}

// said waits for a byte.
func said(t *testing.T, out io.Reader) {
	t.Helper()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// TestStill: it is seen that any process of a tree has run, one that is new or has
// ended among them, and that none has.
func TestStill(t *testing.T) {
	if !everyCPUTicks() {
		testkit.Skip(t, "ticks on each CPU", "nohz_full")
	}
	shell, in, out := shellTree(t, "sh -c 'read x; cat; :' <&3 &")
	s := newStill(shell)
	still := func(processes int) {
		t.Helper()
		testkit.Eventually(t, "nothing runs", s.holds)
		if len(s.seen) != processes {
			t.Fatalf("%v, want %d processes", s.seen, processes)
		}
	}
	still(1)
	fmt.Fprintln(in) // it makes another
	testkit.Eventually(t, "one more runs", func() bool { return !s.holds() && len(s.seen) == 2 })
	still(2)
	fmt.Fprint(in, "x") // which alone runs
	said(t, out)
	testkit.Eventually(t, "it has run", func() bool { return !s.holds() })
	still(2)
	in.Close()
	testkit.Eventually(t, "both have ended", func() bool { return !s.holds() && len(s.seen) == 0 })
	if s.holds() {
		t.Error("a tree without processes is still")
	}
}

// TestStillCrowd: of many it is not asked.
func TestStillCrowd(t *testing.T) {
	for n, want := range map[int]int{mostStill: mostStill, mostStill + 1: 0} {
		script := ""
		for range n {
			script += "cat <&3 & "
		}
		shell, _, _ := shellTree(t, script)
		if got := len(clocksOf(shell)); got != want {
			t.Errorf("%d clocks of %d processes, want %d", got, n, want)
		}
	}
}

// TestLooksAreWoken: what looks at a sandbox of which nothing runs looks when something
// does, and what has run during a look is no less seen.
func TestLooksAreWoken(t *testing.T) {
	w := newWatchdog(&Box{})
	w.still = newStill(1 << 30) // which has no processes: something always runs
	go w.still.follow(w.done)
	looks := make(chan bool)
	go w.repeat(sampled.pause, func() bool { looks <- true; return true })
	for range 3 {
		<-looks
	}
	moved := w.still.next()
	<-moved
	if !w.still.await(moved, nil) {
		t.Error("what has moved already is not seen")
	}
	w.stop()
	if w.still.await(nil, w.done) {
		t.Error("it waits on behind the end")
	}
}
