package launch

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

const (
	netlinkTable = `sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode
0000000000000000 0   0          00000000 0        0        0     2        0        25
0000000000000000 0   3021       00000000 213248   768      0     2        7        31
`
	udpTable = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  108: 0100007F:0035 00000000:0000 07 00010000:00000300 00:00000000 00000000     0        0 4711 2 0000000000000000 0
`
	// A listener, whose queue is a number of connections; a connection of a
	// process's; one that nobody has accepted; one in TIME_WAIT.
	tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0401 00000000:0000 0A 00000000:00000FFF 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
   1: 0100007F:0401 0100007F:9C40 01 00000010:00000020 00:00000000 00000000     0        0 4713 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:0401 0100007F:9C41 08 00000000:00010000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:0401 0100007F:9C42 06 00000000:00000000 03:00001741 00000000     0        0 0 3 0000000000000000
`
)

// TestSocketTables: what each table says of memory, to the byte.
func TestSocketTables(t *testing.T) {
	dir := t.TempDir() + "/"
	for name, text := range map[string]string{"netlink": netlinkTable, "udp": udpTable, "tcp": tcpTable} {
		if err := os.WriteFile(dir+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	orphans := int64(0x10000 + socketSize + waitSize)
	for name, want := range map[string][2]int64{
		"netlink": {213248 + 768, 213248 + 768},
		"udp":     {0x10300 + socketSize, 0x10300 + socketSize},
		"udp6":    {0, 0}, // not there
		"tcp":     {0x30 + socketSize + orphans, orphans},
		"tcp6":    {0, 0},
	} {
		for i, uncharged := range []bool{everySocket, unchargedSocket} {
			for _, table := range slices.Concat(socketTables, tcpTables) {
				if table.name != name {
					continue
				}
				got, ok := table.sum(dir, uncharged, far())
				if !ok || got.bytes != want[i] {
					t.Errorf("%s, uncharged %v: %d, want %d", name, uncharged, got.bytes, want[i])
				}
				if listed := name == "tcp"; listed != (got.queue == 0xFFF) || !listed && got.queue != 0 {
					t.Errorf("%s: %d connections wait for a listener", name, got.queue)
				}
			}
		}
	}
	if _, ok := socketTables[0].sum(dir, everySocket, past()); ok {
		t.Error("a table was read in no time")
	}
}

// TestSocketsOfAProcess: a few sockets are not looked at, for they cannot hold
// much; many are.
func TestSocketsOfAProcess(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := "/proc/self/net/"
	before, ok := countsIn(dir)
	if !ok {
		t.Fatal("not counted")
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if after, ok := countsIn(dir); !ok || after.used != before.used+1 {
		t.Errorf("%+v before, %+v after", before, after)
	}
	if got := mostInSocket(); got < 2*4096 {
		t.Errorf("a socket holds %d bytes at most", got)
	}
}

// TestLocksOf: each lock counts, by the descriptor that it was taken by.
func TestLocksOf(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "locked"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, ok := newTree(0).locksOf(os.Getpid(), 1<<40, far())
	if !ok {
		t.Fatal("not counted")
	}
	for i := range 300 {
		l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(2 * i), Len: 1}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &l); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := newTree(0).locksOf(os.Getpid(), 1<<40, far()); !ok || got != before+300 {
		t.Errorf("%d locks, want %d", got, before+300)
	}
	if _, ok := newTree(0).locksOf(os.Getpid(), 1<<40, past()); ok {
		t.Error("counted in no time")
	}
	// The host has not changed: nothing is looked at.
	self := newTree(os.Getpid())
	if got, ok := self.locks(1<<40, past()); !ok || got != 0 {
		t.Errorf("%d, want nothing", got)
	}
}

// TestBlind: what cannot be seen is no sandbox that uses nothing.
func TestBlind(t *testing.T) {
	if err := newTree(os.Getpid()).blind("children"); err != nil {
		t.Error(err)
	}
	for _, init := range []int{os.Getpid(), 1 << 30} {
		if err := newTree(init).blind("not-there"); err == nil {
			t.Error("seen")
		}
	}
	w := newWatchdog(&Box{MemoryMax: 1 << 40, UnchargedMax: 1})
	defer w.stop()
	if err := w.start(1 << 30); err == nil {
		t.Error("a process that is not there is watched")
	}
}

// TestThreadsAreLookedAt: memory and descriptors of a process are those of any
// of its threads, the first one's or not.
func TestThreadsAreLookedAt(t *testing.T) {
	tasks := tasksOf(os.Getpid())
	if len(tasks) < 2 {
		t.Fatalf("threads %v of a Go program", tasks)
	}
	gone := 1 << 30
	p := process{pid: os.Getpid(), tasks: []int{gone, tasks[1]}}
	if u, ok := p.memory(quickly, far()); !ok || u.own <= 0 {
		t.Errorf("%+v by the second thread", u)
	}
	// Whoever has its parent's memory counts once, with the parent.
	p = process{pid: os.Getpid(), parent: tasks[1], tasks: tasks}
	if u, ok := p.memory(quickly, far()); !ok || u != (used{}) {
		t.Errorf("%+v of a child with its parent's memory", u)
	}
	// Threads that are always gone when they are looked at.
	p = process{pid: os.Getpid(), tasks: tasks}
	none := func(int) (used, bool) { return used{}, false }
	if _, ok := p.memory(none, past()); ok {
		t.Error("a process that could not be looked at was measured")
	}
	p = process{pid: gone, tasks: []int{gone}}
	if u, ok := p.memory(quickly, far()); !ok || u != (used{}) {
		t.Errorf("%+v of a process that is gone", u)
	}
}

// waitingChild is a process that lives until in is closed. The caller waits for it.
func waitingChild(t *testing.T) (cmd *exec.Cmd, in io.Closer) {
	t.Helper()
	cmd = exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in
}

// TestThreadEndsWhileLookedAt: its descriptors cannot be listed any more, which
// hides nothing.
func TestThreadEndsWhileLookedAt(t *testing.T) {
	cmd, in := waitingChild(t)
	dir, ok := newTree(cmd.Process.Pid).openTask(cmd.Process.Pid, "fd", far())
	if !ok || dir < 0 {
		t.Fatal("not opened")
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, ok := newTree(os.Getpid()).filesOf(dir, map[uint64]bool{}); !ok || n != 0 {
		t.Errorf("%d, %v", n, ok)
	}
}

// TestStarved: a thread that runs and has had no CPU is starved, one that has had
// some, or that waits for something else, is not.
func TestStarved(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := unix.Gettid()
	starving := false
	for range 100 { // a tick may pass between two looks
		starving = starving || starved(self, ticksOf(self))
	}
	if !starving || starved(self, ticksOf(self)-1) {
		t.Errorf("%v", starving)
	}
	cmd := exec.Command("cat")
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
	defer cmd.Wait()
	defer in.Close()
	// Before its first word it may wait for a page of its own file, and then run.
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for runs, _ := stateOf(cmd.Process.Pid); runs; runs, _ = stateOf(cmd.Process.Pid) {
	}
	if starved(cmd.Process.Pid, ticksOf(cmd.Process.Pid)) {
		t.Error("one that waits for its input is taken for starved")
	}
}

// TestProcessBeforeItsExecve: one that waits for what to execute hides nothing.
func TestProcessBeforeItsExecve(t *testing.T) {
	_, pid, pidfd, err := sys.StartWaiting(&sys.Program{Calls: &sys.Calls{}, Cgroup: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	defer unix.Wait4(pid, nil, 0, nil)
	defer unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	// A name that cannot be opened stands for what its user may not open.
	if fd, ok := newTree(os.Getpid()).openTask(pid, "none", far()); fd != -1 || !ok {
		t.Errorf("%d, %v: it is taken for a program that hides", fd, ok)
	}
	if _, ok := newTree(os.Getppid()).openTask(pid, "none", far()); ok {
		t.Error("it hides from one whose memory it does not share")
	}
}
