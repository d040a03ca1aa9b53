package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const newUser = unix.CLONE_NEWUSER

// asOther maps user 7 inside to this one, and makes the process that.
func asOther(c *Calls) *Calls {
	c.Add("group", unix.SYS_SETRESGID, 7, 7, 7)
	c.Add("user", unix.SYS_SETRESUID, 7, 7, 7)
	c.SignalMask("unblock signals", 0)
	return c
}

func mapOther(pid int) error { return MapIDs(pid, 7, os.Geteuid(), 7, os.Getegid(), false) }

func requireUserNS(t *testing.T) {
	t.Helper()
	pid, pidfd, err := Spawn(shell("exit 0", asOther(&Calls{})), newUser, mapOther)
	if err != nil {
		t.Skipf("SKIP(want user namespaces, have %v)", err)
	}
	wait(t, pid, pidfd)
}

// wait waits for the process and returns its status.
func wait(t *testing.T, pid, pidfd int) int {
	t.Helper()
	defer unix.Close(pidfd)
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == nil {
			return ws.ExitStatus()
		}
		if err != unix.EINTR {
			t.Error(err)
			return -1
		}
	}
}

func TestSpawn(t *testing.T) {
	requireUserNS(t)
	pid, pidfd, err := Spawn(shell(`test "$A" = b && test $(id -u):$(id -g) = 7:7 && exit 42`, asOther(&Calls{})), newUser, mapOther)
	if err != nil {
		t.Fatal(err)
	}
	if got := wait(t, pid, pidfd); got != 42 {
		t.Errorf("status %d, want 42", got)
	}
	if d, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); d != 1 {
		t.Errorf("this process's dumpable is %d after a spawn, want 1", d)
	}
}

// TestSpawnFails: each way to fail names itself, and leaves no process.
func TestSpawnFails(t *testing.T) {
	requireUserNS(t)
	refused := errors.New("refused")
	bad := asOther(&Calls{})
	bad.Add("too many", unix.SYS_CLOSE, 1<<20)
	none := shell("", asOther(&Calls{}))
	none.Paths = []string{"/nonexistent"}
	for _, tt := range []struct {
		name    string
		p       *Program
		prepare func(int) error
		want    error
	}{
		{"prepare", shell("", asOther(&Calls{})), func(int) error { return refused }, refused},
		{"ids not mapped", shell("", asOther(&Calls{})), func(int) error { return nil }, unix.EINVAL},
		{"call", shell("", bad), mapOther, unix.EBADF},
		{"execve", none, mapOther, unix.ENOENT},
	} {
		var seen int
		_, _, err := Spawn(tt.p, newUser, func(pid int) error { seen = pid; return tt.prepare(pid) })
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if _, err := unix.Wait4(seen, nil, unix.WNOHANG, nil); err != unix.ECHILD {
			t.Errorf("%s: process %d was not waited for: %v", tt.name, seen, err)
		}
	}
	var se *StartError
	if _, _, err := Spawn(shell("", bad), newUser, mapOther); !errors.As(err, &se) || se.Call != "too many" {
		t.Errorf("the failed call is %v", err)
	}
	if _, _, err := Spawn(shell("", nil), unix.CLONE_THREAD, mapOther); !errors.As(err, &se) || se.Call != "clone" || se.Errno != unix.EINVAL {
		t.Errorf("a clone that cannot be: %v", err)
	}
}

// TestSpawnMany: the child shares our memory while the garbage collector and
// other goroutines go on; a mistake there shows sooner or later.
func TestSpawnMany(t *testing.T) {
	requireUserNS(t)
	stop := make(chan struct{})
	var churn, all sync.WaitGroup
	churn.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for range 4 {
		all.Go(func() {
			for i := range 60 {
				pid, pidfd, err := Spawn(shell("exit $((7 + 1))", asOther(&Calls{})), newUser, mapOther)
				if err != nil {
					t.Errorf("run %d: %v", i, err)
					return
				}
				if got := wait(t, pid, pidfd); got != 8 {
					t.Errorf("run %d: status %d, want 8", i, got)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	churn.Wait()
}

// A child that is started at once goes on while it is prepared, even to its end,
// and is not waited for before: its PID means it, and nobody else.
func TestSpawnAtOnce(t *testing.T) {
	requireUserNS(t)
	c := &Calls{}
	c.SignalMask("unblock signals", 0)
	p := shell("exit 9", c)
	p.AtOnce = true
	pid, pidfd, err := Spawn(p, newUser, func(pid int) error {
		for {
			err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if err != unix.EINTR {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := wait(t, pid, pidfd); got != 9 {
		t.Errorf("status %d, want 9", got)
	}
	refused := errors.New("refused")
	if _, _, err := Spawn(p, newUser, func(int) error { return refused }); err != refused {
		t.Errorf("got %v, want what prepare said", err)
	}
}

// A child that waits for its ids holds nothing but its pipes: what it held
// beside them would outlive a caller that is killed meanwhile.
func TestSpawnHoldsNothing(t *testing.T) {
	requireUserNS(t)
	other, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	used, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	p := shell("exit 0", asOther(&Calls{}))
	p.Keep = []int{int(used.Fd())}
	pid, pidfd, err := Spawn(p, newUser, func(pid int) error {
		var open []string
		for range 10000 {
			open = nil
			list, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
			if err != nil {
				return err
			}
			for _, e := range list {
				to, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + e.Name())
				if n, _ := strconv.Atoi(e.Name()); n > 2 {
					open = append(open, to)
				}
			}
			// Its own two pipes, and the one that it was told to keep.
			if len(open) == 3 && slices.Contains(open, "/dev/null") {
				return mapOther(pid)
			}
			unix.Poll(nil, 1) // it has yet to get there
		}
		return fmt.Errorf("the child holds %q", open)
	})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, pid, pidfd)
}

// Many at once: none waits for another one's end.
func TestUserNamespaceMany(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("SKIP(want root, have uid %d)", os.Geteuid())
	}
	requireUserNS(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 40 {
					fd, err := UserNamespace(0, 1<<20, 0, 1<<20)
					if err != nil {
						t.Error(err)
						return
					}
					unix.Close(fd)
				}
			})
		}
		all.Wait()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("two wait for each other")
	}
}
