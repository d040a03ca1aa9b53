package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// On v1 the kernel kills one process; WatchOOM tells, so that the others can be
// killed as well.
func TestV1OOMIsTold(t *testing.T) {
	needTree(t, 1)
	needRoot(t)
	g := create(t, Limits{MemoryMax: 64 << 20, PidsMax: 40})
	oom, err := g.WatchOOM()
	if err != nil || oom == nil {
		t.Fatalf("WatchOOM: %v, %v", oom, err)
	}
	defer oom.Close()
	told := make(chan bool, 1)
	go func() { told <- oom.Wait() }()
	bystander := start(t, childCommand(g, "fork"))
	bystander.line(t)
	if err := killedWithRoom(t, g); err != unix.SIGKILL {
		t.Fatalf("the allocating process ended with %v, want SIGKILL", err)
	}
	if !<-told {
		t.Error("Wait = false although the kernel killed")
	}
	if s, _ := g.Stats(); s.OOMKills != 1 || s.PidsCurrent < 1 {
		t.Errorf("OOMKills = %d, PidsCurrent = %d: want one kill and living others", s.OOMKills, s.PidsCurrent)
	}
}

// killedWithRoom allocates too much in the box, in a group with pids to spare.
func killedWithRoom(t *testing.T, g *Group) unix.Signal {
	t.Helper()
	if err := writeAt(g.at("pids"), "pids.max", "80"); err != nil {
		t.Fatal(err)
	}
	return killedBy(childCommand(g, "alloc:"+strconv.Itoa(300<<20)).Run())
}

func TestV1OOMWaitEnds(t *testing.T) {
	needTree(t, 1)
	needRoot(t)
	g := create(t, Limits{MemoryMax: 64 << 20})
	oom, err := g.WatchOOM()
	if err != nil || oom == nil {
		t.Fatalf("WatchOOM: %v, %v", oom, err)
	}
	told := make(chan bool, 1)
	go func() { told <- oom.Wait() }()
	oom.Close()
	if <-told {
		t.Error("Wait = true although nothing was killed")
	}
	g.Close()
	if _, err := g.WatchOOM(); err != ErrClosed {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

func TestNoOOMWatchWithoutMemoryLimit(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{PidsMax: 40})
	if oom, err := g.WatchOOM(); oom != nil || err != nil {
		t.Errorf("WatchOOM = %v, %v, want none", oom, err)
	}
}

// A kill that comes long after the kernel's event, which is the only one, is told.
func TestV1OOMIsToldLate(t *testing.T) {
	defer func(d time.Duration) { oomTime = d }(oomTime)
	oomTime = time.Millisecond
	place := t.TempDir()
	control := func(text string) {
		if err := os.WriteFile(filepath.Join(place, "memory.oom_control"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	control("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
	fd, err := unix.Open(place, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	event, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	oom := &OOM{&Group{v1: []dir{{names: []string{"memory"}, fd: fd}}}, os.NewFile(uintptr(event), "oom event")}
	defer oom.Close()
	told := make(chan bool, 1)
	go func() { told <- oom.Wait() }()
	select {
	case <-told:
		t.Fatal("a kill was told that there was not")
	case <-time.After(100 * oomTime):
	}
	control("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	select {
	case ok := <-told:
		if !ok {
			t.Error("the wait ended without a kill")
		}
	case <-time.After(time.Minute):
		t.Error("the kill was not told")
	}
	go func() { told <- oom.Wait() }() // as of a supervisor that listens only now
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("a kill before that was not told")
	}
}
