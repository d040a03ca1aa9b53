package launch

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCrowdNice(t *testing.T) {
	for _, c := range []struct{ running, allowed, want int }{
		{0, 4, 0}, {1, 4, 0}, {4, 4, 0},
		{5, 4, 1}, {8, 4, 4}, {64, 4, 13}, {256, 4, 19}, {1 << 16, 4, 19},
		{8, 8, 0}, {64, 8, 10},
	} {
		if got := crowdNice(c.running, c.allowed); got != c.want {
			t.Errorf("%d threads, %d allowed: %d, want %d", c.running, c.allowed, got, c.want)
		}
	}
}

// loops starts a shell that starts n more, each in a process group of its own
// when apart says so.
func loops(t *testing.T, n string, apart bool) *tree {
	t.Helper()
	set := "set +m; "
	if apart {
		set = "set -m; "
	}
	cmd := exec.Command("bash", "-c", set+"for i in $(seq "+n+"); do while :; do :; done & done; echo; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tree := newTree(cmd.Process.Pid)
	t.Cleanup(func() {
		list, _ := tree.processes(far())
		cmd.Process.Kill()
		for _, p := range list {
			unix.Kill(p.pid, unix.SIGKILL)
		}
		cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return tree
}

// niceOf is the nice value of each process.
func niceOf(t *testing.T, tree *tree) (values []int) {
	t.Helper()
	list, ok := tree.processes(far())
	if !ok || len(list) == 0 {
		t.Fatal("no list of processes")
	}
	for _, p := range list {
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, p.pid)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, 20-raw)
	}
	return values
}

// A crowd is made nice once it runs, whatever groups it is in; a few processes
// are let be.
func TestCalm(t *testing.T) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := 20 - raw // whoever runs the tests may have been nice
	few := loops(t, "3", true)
	for range 5 {
		few.calm(1)
	}
	for _, v := range niceOf(t, few) {
		if v != own {
			t.Errorf("one of three has nice value %d, want %d", v, own)
		}
	}
	for _, apart := range []bool{false, true} {
		many := loops(t, "20", apart)
		want := crowdNice(20, crowdSize)
		for many.nice < want { // the last ones may not have begun to run
			many.calm(1)
		}
		for i, v := range niceOf(t, many) {
			if v != max(want, own) {
				t.Errorf("apart %t: process %d of 20 has nice value %d, want %d", apart, i, v, want)
			}
		}
	}
}

// A member of a crowd that is nicer than the crowd becomes stays so: root's call
// for its group would raise it.
func TestCalmLeavesTheNicer(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("SKIP(want root, have an ordinary user, whose calls the kernel keeps from it)")
	}
	many := loops(t, "20", false)
	list, ok := many.processes(far())
	if !ok || len(list) < 20 {
		t.Fatalf("%d processes", len(list))
	}
	nicer := list[len(list)-1].pid
	if err := unix.Setpriority(unix.PRIO_PROCESS, nicer, maxNice); err != nil {
		t.Fatal(err)
	}
	want := crowdNice(19, crowdSize) // it may never come to run
	for many.nice < want {
		many.calm(1)
	}
	for _, p := range list[:len(list)-1] {
		if raw, err := unix.Getpriority(unix.PRIO_PROCESS, p.pid); err != nil || 20-raw < want {
			t.Errorf("one of the crowd has nice value %d, %v, want at least %d", 20-raw, err, want)
		}
	}
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, nicer); err != nil || 20-raw != maxNice {
		t.Errorf("the nicer one has nice value %d, %v, want %d", 20-raw, err, maxNice)
	}
}
