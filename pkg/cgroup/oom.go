package cgroup

import (
	"errors"
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

// The kernel's event comes just before its kill, which is looked for all the time
// for oomTime, and then every oomEvery as long as the box lives. On a busy host who
// kills has waited for a CPU for longer than oomTime, and there is one event for the
// kills of several processes at once.
var (
	oomTime  = 100 * time.Millisecond
	oomEvery = 100 * time.Millisecond
)

// Wait blocks until the kernel has killed a process, and is false after Close.
// The event alone is no kill: memory may have become free in time.
func (o *OOM) Wait() bool {
	// A supervisor that has to wait for a CPU may listen only after the kill.
	if o.group.oomKills() > 0 {
		return true
	}
	var count [8]byte
	for {
		_, err := o.event.Read(count[:])
		deadline := time.Now()
		switch {
		case err == nil:
			deadline = deadline.Add(oomTime)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		}
		for step := 0; ; step++ {
			if o.group.oomKills() > 0 {
				return true
			}
			if !pause(step, deadline) {
				break
			}
		}
		if o.event.SetReadDeadline(time.Now().Add(oomEvery)) != nil {
			return false
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
