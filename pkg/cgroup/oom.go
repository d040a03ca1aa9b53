package cgroup

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// OOM tells when the kernel has killed a process of the box for memory. On v1
// the others live on, and could go on with half of the program missing; v2
// kills the whole box by itself (memory.oom.group) and needs none.
type OOM struct {
	group *Group
	event *os.File
}

// WatchOOM starts to listen. It is nil where nothing is to be told.
func (g *Group) WatchOOM() (*OOM, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	dir := g.at("memory")
	if g.v2 || dir < 0 {
		return nil, nil
	}
	control, err := openAt(dir, "memory.oom_control", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(control)
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	line := strconv.Itoa(event) + " " + strconv.Itoa(control)
	if err := writeAt(dir, "cgroup.event_control", line); err != nil {
		unix.Close(event)
		return nil, err
	}
	return &OOM{g, os.NewFile(uintptr(event), "oom event")}, nil
}

// oomTime bounds the wait for a kill after the kernel's event, which comes just
// before it.
const oomTime = 100 * time.Millisecond

// Wait blocks until the kernel has killed a process, and is false after Close.
// The event alone is no kill: memory may have become free in time.
func (o *OOM) Wait() bool {
	var count [8]byte
	for {
		if _, err := o.event.Read(count[:]); err != nil {
			return false
		}
		deadline := time.Now().Add(oomTime)
		for step := 0; ; step++ {
			if o.group.oomKills() > 0 {
				return true
			}
			if !pause(step, deadline) {
				break
			}
		}
	}
}

// Close ends Wait.
func (o *OOM) Close() { o.event.Close() }

func (g *Group) oomKills() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return -1
	}
	return field(textAt(g.at("memory"), "memory.oom_control"), "oom_kill")
}
