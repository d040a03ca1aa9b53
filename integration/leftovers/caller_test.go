package leftovers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// apiRuns are runs of the Go API in this process, at the same time, that end in
// every way that an embedder sees.
func apiRuns(t *testing.T, work string) {
	t.Helper()
	spec := func(script string) sandbox.Spec {
		s := sandbox.Default()
		s.InitPath = testkit.Binary(t)
		s.Program.Command = []string{"sh", "-c", script}
		s.Limits.Timeout = 5 * time.Minute
		s.Mounts = []policy.Mount{{Source: work, Target: "/data"}} // with an id mapping of its own
		if !testkit.AsRoot(t).Limited() {
			s.AllowDegraded = []string{"memory", "cpu", "pids"}
		}
		return s
	}
	timeout, output, missing := spec(busy+"sleep 1000"), spec(busy+"yes"), spec("")
	timeout.Limits.Timeout = time.Second
	output.OutputLimit, output.Limits.Output = "kill", 1<<10
	missing.Program.Command = []string{"/no/such/program"}
	bad := spec("true")
	bad.Mounts = []policy.Mount{{Source: work, Target: "/data"}, {Source: work + "/none", Target: "/none"}}
	canceled := spec(busy + "echo ready; sleep 1000")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	canceled.Stdout = writer(func(p []byte) (int, error) { cancel(); return len(p), nil })
	var all sync.WaitGroup
	for _, c := range []struct {
		spec sandbox.Spec
		ctx  context.Context
		want result.Outcome
	}{
		{spec(busy + "exit 3"), context.Background(), result.Exited},
		{spec(busy + "kill -9 $$"), context.Background(), result.Signaled},
		{timeout, context.Background(), result.Timeout},
		{output, context.Background(), result.Output},
		{missing, context.Background(), result.Refused},
		{bad, context.Background(), result.Refused},
		{canceled, ctx, result.Canceled},
	} {
		all.Go(func() {
			if res, err := sandbox.Run(c.ctx, c.spec); res.Outcome != c.want {
				t.Errorf("outcome %s, want %s: %v", res.Outcome, c.want, err)
			}
		})
	}
	all.Wait()
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A caller that lives on keeps no descriptor, child or thread of a run.
func TestNothingIsLeftInTheCaller(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	work := testkit.Dir(t)
	apiRuns(t, work) // what the runtime opens and starts once
	before := look(t, work)
	files, threads, goroutines := openFiles(t), len(names(t, "/proc/self/task")), runtime.NumGoroutine()
	const rounds, runs = 4, 7 // apiRuns has seven
	for range rounds {
		apiRuns(t, work)
	}
	nothing(t, before, os.Getpid(), work)
	for _, f := range openFiles(t) {
		if !slices.Contains(files, f) {
			t.Errorf("left open: %s", f)
		}
	}
	// A thread is kept by who waits on it; the runtime itself keeps idle ones for
	// later, as many as were busy at once.
	testkit.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := len(names(t, "/proc/self/task")); now >= threads+runs*rounds {
		t.Errorf("%d threads before, %d after %d runs", threads, now, runs*rounds)
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("there is a child: %d, %v", pid, err)
	}
}

// openFiles lists this process's descriptors and what they are.
func openFiles(t *testing.T) (list []string) {
	t.Helper()
	for _, fd := range names(t, "/proc/self/fd") {
		if to, err := os.Readlink("/proc/self/fd/" + fd); err == nil {
			list = append(list, fd+" "+to)
		}
	}
	return list
}

const (
	envCounted = "SANDGLASS_TEST_COUNTED" // the process in the user namespace
	envRoom    = "SANDGLASS_TEST_ROOM"    // the one that counts
	room       = 24
)

// counted are the kinds that a thread can make one after another.
var counted = []struct {
	name string
	flag int
}{{"net", unix.CLONE_NEWNET}, {"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"cgroup", unix.CLONE_NEWCGROUP}}

// roomFor says how many namespaces of each kind who can still make here.
func roomFor(t *testing.T, who testkit.Who) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envRoom+"=begin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(who.UID), Gid: uint32(who.GID)}}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text)
}

// makeNamespaces is the process that counts: it makes namespaces until there is
// no room, and keeps them by descriptor. Its user namespace is who's own, so that
// it is who's account that they count for.
func makeNamespaces(stage string) {
	if stage == "begin" {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), envRoom+"=count")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if err := cmd.Run(); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	runtime.LockOSThread()
	var found []string
	for _, k := range counted {
		n := 0
		for ; n <= room && unix.Unshare(k.flag) == nil; n++ {
			if _, err := unix.Open("/proc/thread-self/ns/"+k.name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				fmt.Print(err)
				os.Exit(1)
			}
		}
		found = append(found, k.name+" "+strconv.Itoa(n))
	}
	fmt.Print(strings.Join(found, " "))
	os.Exit(0)
}

// Namespaces that nobody shows are counted by the kernel: in a user namespace
// with room for few, a run that leaves one behind is soon the last, and in the
// end there is room for exactly as many as in the beginning.
func TestNamespacesAreGivenBack(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	if os.Getenv(envCounted) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), envCounted+"=1")
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1<<32 - 2}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		return
	}
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		if err := os.WriteFile("/proc/sys/user/max_"+kind+"_namespaces", []byte(strconv.Itoa(room)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	who := testkit.AsUser(t)
	for i := range 3 * room {
		script, exit := "exit 0", 0
		if i%3 == 1 {
			script, exit = busy+"kill -9 $$", 137
		}
		// The kernel gives them back a little later than the run ends.
		testkit.Eventually(t, "there is room for another run", func() bool {
			o := testkit.Run(t, testkit.Opts{Who: who}, "--", "sh", "-c", script)
			if o.Exit != exit && !strings.Contains(o.Stderr, "_namespaces is used up") {
				t.Fatalf("run %d: exit %d, %s", i, o.Exit, o.Stderr)
			}
			return o.Exit == exit
		})
	}
	testkit.Eventually(t, "every namespace is given back", func() bool { return roomFor(t, who) == "net 24 ipc 24 uts 24 cgroup 24" })
}
