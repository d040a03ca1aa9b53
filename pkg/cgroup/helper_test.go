package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// The test binary starts itself as the processes that live in the groups. The
// first of these words in the environment says as which.
const modeVar = "CGROUP_TEST_MODE"

func TestMain(m *testing.M) {
	mode, ok := os.LookupEnv(modeVar)
	if !ok {
		os.Exit(m.Run())
	}
	if join, rest, found := strings.Cut(mode, "+"); found && join == "join" {
		joinAndExec(rest)
	}
	name, arg, _ := strings.Cut(mode, ":")
	run := map[string]func(string){
		"alloc": modeAlloc, "fork": modeFork, "burn": modeBurn, "pause": modePause,
		"creator": modeCreator, "readonly": modeReadOnly, "create": modeCreate, "init": modeInit, "where": modeWhere,
	}[name]
	if run == nil {
		fatal("unknown mode " + mode)
	}
	run(arg)
	os.Exit(0)
}

func fatal(v ...any) {
	fmt.Fprintln(os.Stderr, v...)
	os.Exit(3)
}

// joinAndExec is what init's child does on v1: one thread writes itself into
// each tasks file (descriptors from 3) and executes the program.
func joinAndExec(mode string) {
	runtime.LockOSThread()
	for fd := 3; fd < 3+len(strings.Split(os.Getenv("CGROUP_TEST_FDS"), ",")); fd++ {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			fatal("join", fd, err)
		}
		unix.CloseOnExec(fd)
	}
	os.Setenv(modeVar, mode)
	fatal(unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}

func modeAlloc(arg string) {
	n, _ := strconv.Atoi(arg)
	b := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		b[i] = 1
	}
	fmt.Println("allocated", len(b))
}

// modeFork forks until the kernel refuses, then says how many tasks there are.
// The children are raw forks that only pause, so that the count is exact.
func modeFork(string) {
	debug.SetGCPercent(-1)
	spareThreads(8)
	n := 0
	for ; n < 10000; n++ {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 {
			fatal("fork", errno)
		}
		if pid == 0 {
			for {
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "Threads:")
	line, _, _ := strings.Cut(rest, "\n")
	fmt.Println(n + int(number(line)))
	modePause("")
}

// spareThreads leaves about n idle threads to the runtime, which dies when it
// wants one more while the group is full: each of n goroutines blocks in a
// system call until all do, and so holds a thread of its own.
func spareThreads(n int) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		fatal(err)
	}
	var ready, done sync.WaitGroup
	for range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			unix.Read(p[0], make([]byte, 1))
		})
	}
	ready.Wait()
	unix.Write(p[1], make([]byte, n))
	done.Wait()
}

func modeBurn(arg string) {
	ms, _ := strconv.Atoi(arg)
	for {
		var ru unix.Rusage
		unix.Getrusage(unix.RUSAGE_SELF, &ru)
		if time.Duration(ru.Utime.Nano()+ru.Stime.Nano()) >= time.Duration(ms)*time.Millisecond {
			return
		}
	}
}

// modePause lives until it is killed, or until its standard input ends.
func modePause(string) {
	if os.Getenv("CGROUP_TEST_QUIET") == "" {
		fmt.Println("ready")
	}
	io.Copy(io.Discard, os.Stdin)
}

// modeCreator makes a group with a process in it that outlives it.
func modeCreator(id string) {
	g, err := Create(Options{ID: id, Parent: os.Getenv("CGROUP_TEST_PARENT"), HostUID: os.Geteuid(), Allow: allowed()}, testLimits)
	if err != nil {
		fatal(err)
	}
	c := childCommand(g, "pause")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		fatal(err)
	}
	c.Wait()
}

// modeCreate tries to make a group and says what came of it.
func modeCreate(id string) {
	g, err := Create(Options{ID: id, HostUID: os.Geteuid()}, Limits{MemoryMax: 64 << 20})
	if err != nil {
		fmt.Println(err)
		var r *refusal.Error
		if errors.As(err, &r) {
			fmt.Println(strings.Join(r.Hints, "\n"))
		}
		return
	}
	fmt.Println("created", g.EnforcedBy(Memory))
	if err := g.Close(); err != nil {
		fatal(err)
	}
}

// modeReadOnly does the same where every cgroup mount is read-only, as in a
// container. It runs in a mount namespace of its own.
func modeReadOnly(id string) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fatal(err)
	}
	mounts, _ := readPath("/proc/self/mountinfo", maxMountinfo)
	for _, m := range parseMountinfo(mounts, defaultRoot) {
		if err := unix.Mount("", m.point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			fatal(m.point, err)
		}
	}
	modeCreate(id)
}

// modeInit is PID 1's part on v2: it clones the program into the box, whose
// directory is descriptor 3.
func modeInit(string) {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=where")
	c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: 3}
	modeWhere("")
	out, err := c.CombinedOutput()
	if err != nil {
		fatal(err)
	}
	os.Stdout.Write(out)
}

func modeWhere(string) {
	b, _ := os.ReadFile("/proc/self/cgroup")
	os.Stdout.Write(b)
}

// testLimits are what most tests set.
var testLimits = Limits{MemoryMax: 64 << 20, PidsMax: 40, CPUQuotaUS: 50_000}

// allowed lets tests of the mechanics run where cpu is not delegated.
func allowed() map[string]bool {
	if os.Geteuid() == 0 {
		return nil
	}
	return map[string]bool{CPU: true}
}

func testID() string { return NewID() }

// needTree skips a test that needs another host than this one.
func needTree(t *testing.T, version int) *tree {
	t.Helper()
	tr, err := findTree(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if tr.version != version {
		t.Skipf("SKIP(want controllers on cgroup v%d, have tree %q with version %d)", version, tr.name, tr.version)
	}
	return tr
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("SKIP(want root, have uid %d)", os.Geteuid())
	}
}

func needGroups(t *testing.T) {
	t.Helper()
	h, err := Describe(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range h.Limits[:2] {
		if l.Problem != "" {
			t.Skipf("SKIP(want the %s limit: %s)", l.Limit, l.Problem)
		}
	}
}

func create(t *testing.T, l Limits) *Group {
	t.Helper()
	g, err := Create(Options{ID: testID(), HostUID: os.Geteuid(), Allow: allowed()}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if left := leftovers(g.opt.ID); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return g
}

// leftovers finds the directories of an ID wherever Create could have made them.
func leftovers(id string) []string {
	tr, err := findTree(Options{})
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, p := range tr.parents("") {
		if exists(p + "/" + prefix + id) {
			found = append(found, p+"/"+prefix+id)
		}
	}
	return found
}

// childCommand is a process of mode in the box: cloned into it on v2, joining
// by itself on v1.
func childCommand(g *Group, mode string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"="+mode, "GOMAXPROCS=1")
	if fd := g.BoxFD(); fd >= 0 {
		c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
		return c
	}
	var fds []string
	for _, fd := range g.TaskFDs() {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			fatal(err)
		}
		c.ExtraFiles = append(c.ExtraFiles, os.NewFile(uintptr(dup), "tasks"))
		fds = append(fds, strconv.Itoa(fd))
	}
	c.Env = append(c.Env, modeVar+"=join+"+mode, "CGROUP_TEST_FDS="+strings.Join(fds, ","))
	return c
}

// process is a started child whose lines can be awaited.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: c}
	out, err := c.StdoutPipe()
	if err == nil {
		p.in, err = c.StdinPipe()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	p.out = bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("child ended without a line: %v", p.Wait())
	}
	return p.out.Text()
}

// killedBy is the signal that ended a process.
func killedBy(err error) unix.Signal {
	if e, ok := err.(*exec.ExitError); ok {
		if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return unix.Signal(ws.Signal())
		}
	}
	return 0
}

func farFuture() time.Time { return time.Now().Add(closeTime) }
