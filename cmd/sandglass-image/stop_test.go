package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// writer is this test's binary as an export to a disk that does not answer.
const writer = "SANDGLASS_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writer); dir != "" {
		together = 3 * time.Second // the second of two comes by way of another process, on a busy machine
		got := asked("export", dir)
		fmt.Println("writes")
		for got.Load() == 0 {
			unix.Poll(nil, 1)
		}
		fmt.Println(unix.SignalName(syscall.Signal(got.Load())))
		select {}
	}
	testkit.Main(m)
}

// A second signal ends what the first one cannot, and says what is left. Two that come
// together are one.
func TestSecondSignal(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), writer+"=/the place")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	in := bufio.NewReader(out)
	for _, want := range []string{"writes\n", "SIGTERM\n"} {
		if line, err := in.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the end", func() bool {
		cmd.Process.Signal(syscall.SIGINT)
		return testkit.Dead(cmd.Process.Pid)
	})
	cmd.Wait()
	want := "sandglass: error: image export: ended by a second signal: a part of it may be left in \"/the place\"\nhint: rm -r -- '/the place'\n"
	if code := cmd.ProcessState.ExitCode(); code != 130 || errs.String() != want {
		t.Errorf("exit %d, %q, want %q", code, errs.String(), want)
	}
}
