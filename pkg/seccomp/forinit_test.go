package seccomp

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/sys"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/sysnum"
)

// initMayCall is the whole of it: what is added here is reach for whatever takes
// init over.
const initMayCall = "clock_gettime clock_nanosleep close epoll_create1 epoll_ctl epoll_pwait eventfd2 exit exit_group futex getpid " +
	"getrandom gettid gettimeofday madvise mincore mmap munmap nanosleep ppoll read recvmsg restart_syscall rt_sigaction rt_sigprocmask " +
	"rt_sigreturn sched_getaffinity sched_yield sendmsg sigaltstack wait4 write"

// TestForInitAllowsTheListAlone asks for every call of every interface, and for
// what the three with an argument must refuse.
func TestForInitAllowsTheListAlone(t *testing.T) {
	prog, err := bpfvm.Decode(ForInit())
	if err != nil {
		t.Fatal(err)
	}
	verdict := func(arch, nr uint32, args ...uint64) uint32 {
		d := &bpfvm.Data{Nr: nr, Arch: arch}
		copy(d.Args[:], args)
		got, err := bpfvm.Run(prog, d)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	native := arches[runtime.GOARCH].token
	for _, token := range foreign {
		for nr := range uint32(highestProbed + 1) {
			if v := verdict(token, nr|x32Bit); v != retKillProcess {
				t.Errorf("call %d with the bit of x32, of %#x: %#x", nr, token, v)
			}
			want := uint32(retKillProcess)
			if name, _ := sysnum.Name(runtime.GOARCH, nr); token == native && slices.Contains(strings.Fields(initMayCall), name) {
				want = retAllow
			} else if token == native {
				want = retNoSuchCall
			}
			if v := verdict(token, nr); v != want {
				t.Errorf("call %d of %#x: %#x, want %#x", nr, token, v, want)
			}
		}
	}
	const thread = uint64(goThread)
	for _, c := range []struct {
		nr   uint32
		args []uint64
		want uint32
	}{
		{noCall, nil, retNoSuchCall},
		{unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_WRITE}, retAllow},
		{unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, retNoSuchCall},
		{unix.SYS_TGKILL, []uint64{1, 3, uint64(unix.SIGURG)}, retAllow},
		{unix.SYS_TGKILL, []uint64{2, 2, uint64(unix.SIGKILL)}, retNoSuchCall},
		{unix.SYS_CLONE, []uint64{thread}, retAllow},
		{unix.SYS_CLONE, []uint64{thread | setTLS}, retAllow},
		{unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retNoSuchCall},
		{unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, retNoSuchCall},
		{unix.SYS_CLONE, []uint64{thread | unix.CLONE_NEWNET}, retNoSuchCall},
		{unix.SYS_CLONE, []uint64{thread | 1<<32}, retNoSuchCall},
	} {
		if v := verdict(native, c.nr, c.args...); v != c.want {
			t.Errorf("call %d with %#x: %#x, want %#x", c.nr, c.args, v, c.want)
		}
	}
}

// TestGoLivesWithoutTheRest: a call that Go's runtime needs and does not get ends
// init, and every run with it. A newer Go is held to this list here.
func TestGoLivesWithoutTheRest(t *testing.T) {
	if out, err := helper("waiting"); err != nil || out != "alive" {
		t.Errorf("%s, %v", out, err)
	}
}

// helperWaiting does what a runtime does in the longest of runs, and more of it, and
// then what init does: a wait, a message, an end.
func helperWaiting() {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = sys.SeccompAllThreads(waiting(uint32(os.Getpid())))
	}
	if err != nil {
		fmt.Println("install:", err)
		os.Exit(3)
	}
	// Refused, and so the filter is there.
	if _, err := os.Open("/"); err == nil || syscall.Kill(os.Getppid(), 0) != unix.ENOSYS {
		fmt.Println("not confined:", err)
		os.Exit(3)
	}
	busyRuntime()
	poll := []unix.PollFd{{Fd: int32(pair[0]), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 10)
	if n == 0 && err == nil {
		err = unix.Sendmsg(pair[1], []byte{1}, nil, nil, unix.MSG_NOSIGNAL)
	}
	if err == nil {
		_, _, _, _, err = unix.Recvmsg(pair[0], make([]byte, 1), nil, unix.MSG_CMSG_CLOEXEC)
	}
	if _, e := unix.Wait4(-1, nil, 0, nil); err != nil || e != unix.ECHILD {
		fmt.Println("waiting:", err, e)
		os.Exit(3)
	}
	fmt.Println("alive")
	os.Exit(0)
}

// busyRuntime collects garbage beside loops that must be preempted, threads that
// come, wait in the kernel and end, timers, and memory that is given back.
func busyRuntime() {
	var stop sync.WaitGroup
	over := make(chan struct{})
	var kept [][]byte
	for i := range 12 {
		stop.Go(func() {
			runtime.LockOSThread() // and ends with its thread
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				unix.Nanosleep(&unix.Timespec{Nsec: int64(i+1) * 100_000}, nil)
				for range 200_000 { // no call, no allocation: only a signal stops it
					n++
				}
			}
		})
	}
	for range 20 {
		kept = append(kept, make([]byte, 4<<20))
		runtime.GC()
	}
	runtime.KeepAlive(kept)
	kept = nil
	debug.FreeOSMemory()
	close(over)
	stop.Wait()
}
