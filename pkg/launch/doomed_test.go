package launch

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExiting(t *testing.T) {
	if exiting("/proc/self") {
		t.Error("this process is at its end")
	}
	if !exiting("/proc/0") {
		t.Error("a process that is not there is not at its end")
	}
}

func TestFlagged(t *testing.T) {
	for stat, want := range map[string]bool{
		"S 1 2 2 0 -1 4194304": false, "S": false,
		"R 1 2 2 0 -1 4194308": true,
		"R 1 2 2 0 -1 4194816": true, // writes its core
		"R 1 2 2 0 -1 4195328": true, // has taken its signal
	} {
		if got := flagged(bytes.Fields([]byte(stat)), pfExiting|pfDumpCore|pfSignaled); got != want {
			t.Errorf("%q: %v", stat, got)
		}
	}
}

// TestSentenced: a signal that will end a process is told from one that will not.
func TestSentenced(t *testing.T) {
	const none = "Threads:\t1\nSigQ:\t1/62\nSigPnd:\t0\nShdPnd:\t0\nSigBlk:\t0\nSigIgn:\t0\nSigCgt:\t0\n"
	set := func(fields ...string) string {
		status := none
		for _, f := range fields {
			name, _, _ := strings.Cut(f, ":")
			status = strings.Replace(status, name+":\t0", f, 1)
		}
		return status
	}
	for status, want := range map[string]bool{
		none:                             false,
		set("SigPnd:\t0000000000000100"): true,  // SIGKILL
		set("ShdPnd:\t0000000000000020"): true,  // SIGABRT
		set("SigPnd:\t0000000000000400"): true,  // SIGSEGV
		set("ShdPnd:\t8000000000000000"): true,  // the last one
		set("ShdPnd:\t00000000087f0000"): false, // all that are harmless
		set("ShdPnd:\t0000000000000022", "SigBlk:\t0000000000000022"): false,
		set("ShdPnd:\t0000000000000022", "SigCgt:\t0000000000000002"): true,
		set("ShdPnd:\t0000000000000002", "SigIgn:\t0000000000000002"): false,
		set("ShdPnd:\tx"): true,
	} {
		if got := sentenced([]byte(status)); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
}

// TestDoomed: a process that has yet to end after a fatal signal is told from one that
// waits, or is not to be seen.
func TestDoomed(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGABRT, unix.SIGSEGV, unix.SIGQUIT} {
		for range 4 {
			cmd := exec.Command("/bin/sleep", "1000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := cmd.Process.Pid
			unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) // no file of it here
			if doomed(procOf(pid)) {
				t.Error("one that lives is doomed")
			}
			// One that is stopped takes no signal but SIGKILL before it goes on.
			unix.Kill(pid, unix.SIGSTOP)
			if _, err := unix.Wait4(pid, nil, unix.WUNTRACED, nil); err != nil {
				t.Fatal(err)
			}
			if doomed(procOf(pid)) {
				t.Error("one that is stopped is doomed")
			}
			if unix.Kill(pid, sig); !doomed(procOf(pid)) {
				t.Errorf("one that was sent %v is not doomed", sig)
			}
			if unix.Kill(pid, unix.SIGCONT); !doomed(procOf(pid)) {
				t.Errorf("one that ends by %v is not doomed", sig)
			}
			if cmd.Wait(); !doomed(procOf(pid)) {
				t.Error("one that is gone is not doomed")
			}
		}
	}
}

// TestDoomedByAThread: a signal that another thread than the first was sent alone will
// end the process too.
func TestDoomedByAThread(t *testing.T) {
	cmd, out := startPython(t, "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start(); print(flush=True)")
	pid := cmd.Process.Pid
	defer cmd.Wait()
	defer unix.Kill(pid, unix.SIGKILL)
	unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	unix.Kill(pid, unix.SIGSTOP)
	if _, err := unix.Wait4(pid, nil, unix.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	tasks := tasksOf(pid)
	if len(tasks) != 2 || doomed(procOf(pid)) {
		t.Fatalf("threads %v, or one that is stopped is doomed", tasks)
	}
	if err := unix.Tgkill(pid, tasks[1], unix.SIGABRT); err != nil {
		t.Fatal(err)
	}
	if !doomed(procOf(pid)) {
		t.Error("what a thread was sent is not seen")
	}
}

// startPython starts a program, and gives what it prints.
func startPython(t *testing.T, code string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command("python3", "-c", code)
	if cmd.Err != nil {
		t.Skip("SKIP(want python3, have none)")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}
