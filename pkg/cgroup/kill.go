package cgroup

import (
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoGroup is the error of Kill when every limit is degraded and there is no
// group: what runs must then be killed by other means.
var ErrNoGroup = errors.New("cgroup: there is no group to kill")

// Kill kills every process in the box and does not wait for their end. PID 1
// is not in the box and goes on. An empty box is no error.
func (g *Group) Kill() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	if g.box.fd < 0 && len(g.v1) == 0 {
		return ErrNoGroup
	}
	g.killed = true
	err := error(nil)
	if g.box.fd >= 0 {
		err = kill(g.box.fd)
	} else {
		err = g.killV1()
	}
	if err == nil {
		g.hasten()
	}
	return err
}

// Empty says whether no process is in the box any more: of the hierarchies of v1
// in the first one, which a process joins before the others and, as all, can only
// leave by ending. It is false where there is no group.
func (g *Group) Empty() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return false, ErrClosed
	case g.box.fd >= 0:
		s, err := readAt(g.box.fd, "cgroup.events")
		return field(s, "populated") == 0, err
	case len(g.v1) > 0:
		text, err := procs(g.v1[0].fd)
		return err == nil && text == "", err
	}
	return false, ErrNoGroup
}

// hasten lifts the CPU limit from the dying, and gives them more than their
// share for the moment: what a process has to undo (its memory, above all) is
// CPU time of its group, and with a small quota, or on a busy host, the end of a
// large program would take seconds. Nobody of them runs code of its own any more.
func (g *Group) hasten() {
	switch {
	case g.by[CPU] == "":
	case g.v2:
		writeAt(g.box.fd, "cpu.max", "max")
		writeAt(g.run.fd, "cpu.weight", "1000") // its neighbours are other runs
	default:
		writeAt(g.at(CPU), "cpu.cfs_quota_us", "-1")
		writeAt(g.at(CPU), "cpu.shares", "10240")
	}
}

// killV1 kills what is in any of the hierarchies: a process that is killed
// while it joins is in the first ones only.
func (g *Group) killV1() error {
	var first error
	killed := map[string]bool{} // nearly all are in each
	for _, d := range g.v1 {
		killPass(d.fd, killed)
	}
	g.stopForks()
	for _, d := range g.v1 {
		if err := killOthers(d.fd, killed); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// stopForks ends the race against a fork bomb: with pids.max at 0 no fork
// succeeds any more, and one pass over the pids is enough. It comes after a
// first pass: an ordinary program is dead by then, and does not complain of a
// fork that failed.
func (g *Group) stopForks() {
	if dir := g.at("pids"); dir >= 0 {
		writeAt(dir, "pids.max", "0") // best effort: killProcs repeats anyway
	}
}

// kill kills all processes in a v2 group and below it; before Linux 5.14,
// which has no cgroup.kill, only those in the group itself.
func kill(dir int) error {
	err := writeAt(dir, "cgroup.kill", "1")
	if err != unix.ENOENT {
		return err
	}
	killed := map[string]bool{}
	killPass(dir, killed)
	writeAt(dir, "pids.max", "0") // as in stopForks
	return killOthers(dir, killed)
}

const (
	killPasses = 100 // each kills what the one before has missed; without pids.max forks can outrun some
	killBatch  = 32  // descriptors held at once
	procsBytes = 64 << 10
)

// killProcs sends SIGKILL to every process in one group, until a pass finds
// nobody that was not signalled before.
//
// A pid that was read can belong to a process outside by the time it is
// signalled, and the program can provoke that by forking fast. So the signal
// goes to a pidfd, and only when the pid is still in the group after the pidfd
// was opened: then the pidfd's process is either that one or dead.
func killProcs(dir int) error { return killOthers(dir, map[string]bool{}) }

// killOthers is killProcs for those that are not in killed, and adds them.
func killOthers(dir int, killed map[string]bool) error {
	for range killPasses {
		n, err := killPass(dir, killed)
		if err != nil || n == 0 {
			return err
		}
	}
	return errors.New("cgroup: processes are born quicker than they can be killed")
}

// killPass kills those that one look at the group shows, and says how many.
func killPass(dir int, killed map[string]bool) (int, error) {
	pids, err := fresh(dir, killed)
	if err != nil {
		return 0, err
	}
	for batch := range slices.Chunk(pids, killBatch) {
		if err := killSome(dir, batch); err != nil {
			return 0, err
		}
	}
	return len(pids), nil
}

// fresh lists the processes that are not in killed, and adds them. Pid 0 is a
// process outside the caller's PID namespace, which has no name here; and
// kill(0) would be the caller's own process group.
func fresh(dir int, killed map[string]bool) ([]string, error) {
	text, err := procs(dir)
	if err != nil {
		return nil, err
	}
	var pids []string
	for pid := range strings.FieldsSeq(text) {
		if pid != "0" && !killed[pid] {
			killed[pid] = true
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// procs reads cgroup.procs, at most procsBytes of whole lines. It is opened
// each time: v1 shows one snapshot for some time to the same open file.
func procs(dir int) (string, error) {
	fd, err := openAt(dir, "cgroup.procs", unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var buf [4096]byte
	s, err := readFD(fd, buf[:], procsBytes)
	return s[:strings.LastIndexByte(s, '\n')+1], err
}

func killSome(dir int, pids []string) error {
	type target struct {
		pid string
		fd  int
	}
	var targets []target
	defer func() {
		for _, t := range targets {
			unix.Close(t.fd)
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(int(number(pid)), 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			return err
		}
		targets = append(targets, target{pid, fd})
	}
	now, err := procs(dir)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if !hasWord(now, t.pid) {
			continue
		}
		if err := unix.PidfdSendSignal(t.fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}

// waitV2 waits for "populated 0" of a v2 group and everything below it, by the
// kernel's event. The event counts from the last read of the same open file.
func waitV2(dir int, deadline time.Time) error {
	fd, err := openAt(dir, "cgroup.events", unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var buf [256]byte
	for {
		s, err := readFD(fd, buf[:], len(buf))
		if err != nil {
			return err
		}
		if field(s, "populated") == 0 {
			return nil
		}
		if err := pollUntil(fd, unix.POLLPRI, deadline); err != nil {
			return err
		}
	}
}

// drainV1 kills and waits until a v1 group is empty. v1 has no event for it,
// but a pidfd has one for the end of a process.
func drainV1(dir int, deadline time.Time) error {
	for step := 0; ; step++ {
		text, err := procs(dir)
		if err != nil || text == "" {
			return err
		}
		if err := killProcs(dir); err != nil {
			return err
		}
		pid, _, _ := strings.Cut(text, "\n")
		fd, err := unix.PidfdOpen(int(max(number(pid), 0)), 0)
		if err == nil {
			err = pollUntil(fd, unix.POLLIN, deadline)
			unix.Close(fd)
			if err != nil {
				return err
			}
		}
		// The process is over and can still be listed for a moment.
		if !pause(step, deadline) {
			return errStay
		}
	}
}

var errStay = errors.New("processes do not end")

func pollUntil(fd int, events int16, deadline time.Time) error {
	left := time.Until(deadline)
	if left <= 0 {
		return errStay
	}
	// Round up: with 0 ms the last part of the wait would be a busy loop.
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(left/time.Millisecond)+1)
	if err == unix.EINTR {
		return nil // the caller looks again
	}
	return err
}
