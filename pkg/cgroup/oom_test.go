package cgroup

import (
	"strconv"
	"testing"

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
