package child

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

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
		_ = Run(cmd)
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
	const others = `trap '' TERM HUP INT; sleep 1000 & a=$!; b=$( (setsid sleep 1000 >/dev/null 2>&1 & echo $!) ); echo $$ $a $b; `
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
