package testkit

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/pkg/hostid"
)

func TestMain(m *testing.M) { Main(m) }

func TestRunBothIdentities(t *testing.T) {
	Requires(t, "userns")
	Each(t, func(t *testing.T, who Who) {
		o := Sh(t, who, "echo out; echo err >&2; exit 7")
		if o.Exit != 7 || o.Stdout != "out\n" || o.Stderr != "err\n" {
			t.Fatalf("exit %d, stdout %q, stderr %q", o.Exit, o.Stdout, o.Stderr)
		}
		if !o.HasResult || o.Result.ExitCode != 7 || o.Result.Outcome != "exited" {
			t.Fatalf("result: %+v", o.Result)
		}
	})
}

func TestWaitLine(t *testing.T) {
	Requires(t, "userns")
	p := Start(t, Opts{Who: AsUser(t)}, "--", "sh", "-c", "echo ready 5; exec sleep 1000")
	if got := p.WaitLine("ready"); got != "ready 5" {
		t.Fatalf("line %q", got)
	}
	p.Kill()
	if o := p.Wait(); o.Exit != 137 {
		t.Fatalf("exit %d", o.Exit)
	}
}

// TestWaitLineOfTheEnd: what is printed last is found after the end.
func TestWaitLineOfTheEnd(t *testing.T) {
	Requires(t, "userns")
	p := Start(t, Opts{Who: AsUser(t)}, "--", "echo", "last words")
	if p.ended(); p.WaitLine("last") != "last words" {
		t.Error("it was not found")
	}
}

func TestSkipNamesWhatIsMissing(t *testing.T) {
	t.Run("inner", func(t *testing.T) {
		t.Cleanup(func() {
			if !t.Skipped() {
				t.Error("not skipped")
			}
		})
		Requires(t, "no-such-command")
	})
	found := false
	for _, s := range Skips() {
		found = found || strings.HasPrefix(s, "SKIP(want no-such-command, have no no-such-command on PATH) ")
	}
	if !found {
		t.Fatalf("skips: %q", Skips())
	}
	skips.list = skips.list[:len(skips.list)-1] // not one of the host's
}

// A key of a sandbox's host id is seen.
func TestSnapshotSeesKeys(t *testing.T) {
	Requires(t, "root")
	const id = hostid.First + hostid.Count - 1
	made, seen := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and the thread ends with its keyring
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id)
		err := error(nil)
		if errno != 0 {
			err = errno
		} else {
			_, err = unix.AddKey("user", "sandglass-test", []byte("x"), unix.KEY_SPEC_THREAD_KEYRING)
		}
		made <- err
		<-seen
	}()
	if err := <-made; err == unix.ENOSYS {
		Skip(t, "keys in the kernel", err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	if list := keys(); !slices.Contains(list, strconv.Itoa(id)) {
		t.Errorf("%q, without the key of %d", list, id)
	}
	close(seen)
}

// A module of the system's Python is found without being loaded.
func TestRequiresModule(t *testing.T) {
	Requires(t, "/usr/bin/python3")
	if have := lacks("python3:json"); have != "" {
		t.Errorf("json: %s", have)
	}
	if have, want := lacks("python3:no_such_module"), "no module no_such_module in /usr/bin/python3"; have != want {
		t.Errorf("have %q, want %q", have, want)
	}
}
