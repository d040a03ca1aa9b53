package sys

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// start runs a program with the calls and returns its exit status.
func start(t *testing.T, p *Program) (int, error) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old)
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	pid, pidfd, err := Start(p)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
			break
		}
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

func shell(script string, calls *Calls) *Program {
	if calls == nil {
		calls = &Calls{}
	}
	return &Program{Calls: calls, Paths: []string{"/bin/sh"}, Argv: []string{"sh", "-c", script}, Env: []string{"A=b"}, Cgroup: -1}
}

func TestStart(t *testing.T) {
	if code, err := start(t, shell(`test "$A" = b && exit 42`, nil)); err != nil || code != 42 {
		t.Errorf("got %d, %v", code, err)
	}
}

// TestStartMany: the child shares our memory and stack; a mistake there shows
// sooner or later.
func TestStartMany(t *testing.T) {
	for i := range 300 {
		if code, err := start(t, shell("exit "+strconv.Itoa(i%200), nil)); err != nil || code != i%200 {
			t.Fatalf("run %d: %d, %v", i, code, err)
		}
	}
}

// TestFailedCall: the call that failed is named, those after it are not made,
// and the program does not run.
func TestFailedCall(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	c := &Calls{}
	c.Add("fine", unix.SYS_GETPID)
	c.Add("tolerated", unix.SYS_CLOSE, ^uintptr(0))
	c.Tolerate(unix.EBADF)
	c.Add("broken", unix.SYS_CLOSE, ^uintptr(0))
	c.Add("never", unix.SYS_EXIT_GROUP, 3)
	_, err := start(t, shell("touch "+mark, c))
	var se *StartError
	if !errors.As(err, &se) || se.Call != "broken" || se.Errno != unix.EBADF {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Error("the program ran")
	}
	if want := []string{"fine", "tolerated", "broken", "never"}; !reflect.DeepEqual(c.Names(), want) {
		t.Errorf("names %v", c.Names())
	}
}

// TestStartGone: a child that is killed among its calls is no program that was
// started.
func TestStartGone(t *testing.T) {
	c := &Calls{}
	c.Add("fine", unix.SYS_GETPID)
	c.Add("gone", unix.SYS_EXIT_GROUP, 0)
	_, err := start(t, shell("exit 0", c))
	var se *StartError
	if !errors.As(err, &se) || se.Call != "gone" || se.Errno != unix.ECANCELED {
		t.Errorf("got %v", err)
	}
}

// TestExecvp: a missing candidate is passed over, EACCES is remembered.
func TestExecvp(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		errno unix.Errno
		path  string
	}{
		{[]string{"/none", plain + "/x", "/bin/sh"}, 0, ""},
		{[]string{plain, "/bin/sh"}, 0, ""},
		{[]string{"/none", "/none2"}, unix.ENOENT, "/none2"},
		{[]string{plain, "/none"}, unix.EACCES, plain},
		{[]string{bad, "/bin/sh"}, unix.ENOEXEC, bad},
		{nil, unix.ENOENT, ""},
	} {
		p := shell("exit 0", nil)
		p.Paths = c.paths
		code, err := start(t, p)
		var se *StartError
		switch {
		case c.errno == 0 && (err != nil || code != 0):
			t.Errorf("%v: %d, %v", c.paths, code, err)
		case c.errno != 0 && (!errors.As(err, &se) || se.Errno != c.errno || se.Path != c.path || se.Call != "execve"):
			t.Errorf("%v: %v", c.paths, err)
		}
	}
}

// TestSignals: nothing is ignored or blocked in the program, whatever we do.
func TestSignals(t *testing.T) {
	c := &Calls{}
	c.DefaultSignals("signals")
	c.SignalMask("mask", 0)
	script := `grep -E '^Sig(Blk|Ign):' /proc/self/status | grep -v '0000000000000000'; test $? = 1`
	if code, err := start(t, shell(script, c)); err != nil || code != 0 {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestRlimit(t *testing.T) {
	c := &Calls{}
	c.Rlimit("nofile", unix.RLIMIT_NOFILE, 77, 77)
	if code, err := start(t, shell("exit $(ulimit -n)", c)); err != nil || code != 77 {
		t.Errorf("got %d, %v", code, err)
	}
}

// TestSeccompCall: a filter that kills all but execve and what sh needs would be
// long; one that answers getppid with an error shows that it is installed.
func TestSeccompCall(t *testing.T) {
	c := &Calls{}
	c.Add("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	// ld nr; jeq getppid → errno 1; allow
	c.Seccomp("seccomp", []byte{
		0x20, 0, 0, 0, 0, 0, 0, 0,
		0x15, 0, 0, 1, byte(unix.SYS_GETPPID), 0, 0, 0,
		0x06, 0, 0, 0, 1, 0, 5, 0,
		0x06, 0, 0, 0, 0, 0, 0xff, 0x7f,
	})
	script := `grep -q '^Seccomp:.*2' /proc/self/status`
	if code, err := start(t, shell(script, c)); err != nil || code != 0 {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestNUL(t *testing.T) {
	for _, set := range []func(*Program){
		func(p *Program) { p.Argv = []string{"a\x00b"} },
		func(p *Program) { p.Env = []string{"A=\x00"} },
		func(p *Program) { p.Paths = []string{"/bin/sh\x00"} },
	} {
		p := shell("exit 0", nil)
		set(p)
		if _, err := start(t, p); !errors.Is(err, unix.EINVAL) {
			t.Errorf("got %v", err)
		}
	}
}

func TestUserNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP(want root, have uid " + strconv.Itoa(os.Geteuid()) + ")")
	}
	before, _ := os.ReadDir("/proc/self/fd")
	fd, err := UserNamespace(0, 1879048192, 5, 1879048193)
	if err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	own, _ := os.Readlink("/proc/self/ns/user")
	if err != nil || !strings.HasPrefix(link, "user:[") || link == own {
		t.Errorf("got %s, %v", link, err)
	}
	unix.Close(fd)
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) != len(before) {
		t.Errorf("%d descriptors, %d before", len(after), len(before))
	}
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}
