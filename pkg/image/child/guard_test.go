package child

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// builder is this test's binary as one that starts a guarded program, and waits.
const builder = "SANDGLASS_TEST_BUILDER"

func TestMain(m *testing.M) {
	Main()
	if dir := os.Getenv(builder); dir != "" {
		keep, err := os.Open(dir)
		if err != nil {
			panic(err)
		}
		cmd := exec.Command("/bin/sh", "-c", os.Args[1])
		cmd.Stdout = os.Stdout
		done, err := Guard(cmd, keep)
		if err != nil {
			panic(err)
		}
		grace = 50 * time.Millisecond
		told, stopped := make(chan os.Signal, 1), make(chan bool)
		signal.Notify(told, unix.SIGTERM)
		go func() {
			<-told
			close(stopped)
			Stop()
			os.Exit(9)
		}()
		_ = Run(cmd)
		select {
		case <-stopped:
			select {} // as in an import that is stopped
		default:
		}
		done()
		os.Exit(cmd.ProcessState.ExitCode())
	}
	os.Exit(m.Run())
}

// begin starts a builder of a script, and gives what the script writes.
func begin(t *testing.T, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, script)
	cmd.Env = append(os.Environ(), builder+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// others starts a child, an orphan, and one with a session of its own, all deaf to
// signals, and tells who the script and they are.
const others = `trap '' TERM HUP INT; sleep 1000 & a=$!; b=$( (setsid sleep 1000 >/dev/null 2>&1 & echo $!) ); echo $$ $a $b; `

// line is the next that is written, as numbers.
func line(t *testing.T, r *bufio.Reader) (list []int) {
	t.Helper()
	text, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for f := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// Neither a builder that is killed nor a program that ends leaves one that the program
// has started: a child, an orphan, one with a session of its own, deaf to signals.
func TestGuardLeavesNobody(t *testing.T) {
	gone := func(pids []int) {
		t.Helper()
		for _, pid := range pids {
			testkit.Eventually(t, "the end of a program", func() bool { return testkit.Dead(pid) })
		}
	}
	cmd, out := begin(t, others+"wait")
	pids := line(t, out)
	if len(pids) != 3 {
		t.Fatalf("pids %v", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(pids)
	cmd, out = begin(t, others+"exit 7")
	pids = line(t, out)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit %d, want 7", code)
	}
	gone(pids)
}

// A builder that is told to stop is not over before all of them are, though none heeds
// its signal.
func TestStopLeavesNobody(t *testing.T) {
	cmd, out := begin(t, others+"wait")
	pids := line(t, out)
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 9 || len(pids) != 3 {
		t.Errorf("exit %d, want 9; pids %v", code, pids)
	}
	for _, pid := range pids {
		if !testkit.Dead(pid) {
			t.Errorf("process %d is still there", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
