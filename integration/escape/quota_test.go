package escape

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

//go:embed testdata/quota.c
var quotaSource string

// What the kernel counts for a user on the whole host is bounded for each
// sandbox: else one takes all that the caller and every other sandbox may have.
// The places and /proc do not matter to it.
func TestKernelQuotasOfTheUser(t *testing.T) {
	const want = "instances 16 EMFILE\nwatches 2048 ENOSPC\ntimers 512 EAGAIN\nqueues 3 EMFILE\nterminals 64 ENOSPC\ntaken\n"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, flags := range [][]string{{"--pty"}, {"--pty", "--proc", "none"}} {
			o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, flags, quotaSource))
			if o.Stdout != want {
				t.Errorf("%v: %q, want %q", flags, o.Stdout, want)
			}
		}
	})
}

// The account that these are charged to on the host is the sandbox's own, not
// root's: the user namespace belongs to its id.
func TestKernelQuotasAreChargedToTheSandbox(t *testing.T) {
	testkit.Requires(t, "root")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		l := hold(t, testkit.Opts{Who: who}, "true")
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", l.program))
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Close()
		owner, err := unix.IoctlGetUint32(int(ns.Fd()), unix.NS_GET_OWNER_UID)
		if err != nil {
			t.Fatal(err)
		}
		var real, effective int
		if _, err := fmt.Sscan(status(t, l.program, "Uid"), &real, &effective); err != nil {
			t.Fatal(err)
		}
		if int(owner) != real || effective != real || owner == 0 {
			t.Errorf("the user namespace is charged to user %d, the program is user %d (%d)", owner, real, effective)
		}
	})
}

// alike says that two outputs differ in no figure by more than the one or two
// that a process has in flight for itself.
func alike(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		n, err1 := strconv.Atoi(x[i])
		m, err2 := strconv.Atoi(y[i])
		if err1 != nil || err2 != nil {
			if x[i] != y[i] {
				return false
			}
		} else if n-m > 2 || m-n > 2 {
			return false
		}
	}
	return true
}

// A neighbour that has taken all it can have leaves the next one everything.
func TestNeighboursQuotasAreUntouched(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		prog := testkit.C(t, quotaSource) + ":" + testkit.Inside
		first, release := testkit.Hold(t, testkit.Opts{Who: who}, "-v", prog, "--", testkit.Inside, "hold")
		first.WaitLine("taken")
		second := must(t, testkit.Run(t, testkit.Opts{Who: who}, "-v", prog, "--", testkit.Inside))
		release()
		if o := must(t, first.Wait()); !alike(o.Stdout, second.Stdout) {
			t.Errorf("the first had\n%s\nthe second\n%s", o.Stdout, second.Stdout)
		}
	})
}

// A signal for which init had a handler would run it, for each that the program
// sends, on time that no limit counts. Landlock would stop most of them before.
func TestInitCatchesNoSignal(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		l := hold(t, testkit.Opts{Who: who}, "true")
		confined(t, l.init)
		if got := status(t, l.init, "SigCgt"); got != "0000000000000000" {
			t.Errorf("init has handlers for %s, want none", got)
		}
		// All but SIGKILL, SIGSTOP and SIGCHLD: whatever one of its threads blocks.
		if got := status(t, l.init, "SigIgn"); got != fmt.Sprintf("%016x", ^uint64(1<<8|1<<18|1<<16)) {
			t.Errorf("init ignores %s", got)
		}
	})
}

// fillSignals has 64 signals of a user wait until the test's end.
func fillSignals(t *testing.T, who testkit.Who) {
	t.Helper()
	cmd := who.Command("/usr/bin/python3", "-c", `import signal, sys, threading
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
for _ in range(64): signal.pthread_kill(threading.get_ident(), 40)
print("full", flush=True)
sys.stdin.read()`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "full\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

// Where the user's signals are used up already, by whomever, a run says so
// before the program starts. Init would else wait for its own signals, and every
// run would last until its timeout.
func TestNoSignalToBeQueued(t *testing.T) {
	testkit.Requires(t, "prlimit", "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		fillSignals(t, who)
		none := func(cmd *exec.Cmd) {
			cmd.Args = append([]string{"sh", "-c", `prlimit --pid $$ --sigpending=64 || exit 9; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
		}
		o := testkit.Run(t, testkit.Opts{Who: who, Setup: none}, "--", "echo", "ran")
		want := "init: ignore signals to init: no signal can be queued: the user's limit on signals that wait (ulimit -i) is used up"
		if id := o.Result.HostID; id != nil && id.Own && o.Exit == 0 && o.Stdout == "ran\n" {
			return // the queue of such an id is its own
		}
		if o.Exit != 125 || o.Result.Outcome != result.Failed || o.Result.Error != want || o.Stdout != "" {
			t.Errorf("exit %d, %s, %q, stdout %q", o.Exit, o.Result.Outcome, o.Result.Error, o.Stdout)
		}
	})
}
