// Package child starts the programs of a build, each with a process group of its
// own, and ends them with the build: apt-get has others that download for it, and a
// sandbox has to be taken apart.
package child

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// running are the leaders of the groups that were started and have not ended.
var running = struct {
	sync.Mutex
	pids    map[int]*program
	guards  map[*exec.Cmd]func() // of those that have one: ends them with all that they have started
	stopped bool
}{pids: map[int]*program{}, guards: map[*exec.Cmd]func(){}}

// program is the leader of a group.
type program struct {
	ended chan struct{} // closed when it has
	guard func()        // nil for none
}

// errStopped is the end of a build that was told to stop.
var errStopped = errors.New("the build was stopped")

// Start is cmd.Start. Nothing is started any more once Stop was called.
func Start(cmd *exec.Cmd) error {
	running.Lock()
	defer running.Unlock()
	if running.stopped {
		return errStopped
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	err := cmd.Start()
	if err == nil {
		running.pids[cmd.Process.Pid] = &program{make(chan struct{}), running.guards[cmd]}
	}
	return err
}

// Wait is cmd.Wait. It forgets the group before the leader is reaped: from then on
// its number may be another's.
func Wait(cmd *exec.Cmd) error {
	pid := cmd.Process.Pid
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	running.Lock()
	if p := running.pids[pid]; p != nil {
		delete(running.pids, pid)
		close(p.ended)
	}
	running.Unlock()
	return cmd.Wait()
}

// Run is cmd.Run.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return Wait(cmd)
}

// grace is how long a program may take to end by itself.
var grace = 5 * time.Second

// Stop ends all groups, and returns when their leaders have ended. Who is deaf to the
// signal is killed by its guard, which finds those that have left the group as well
// (setsid): with the guard killed first they would be nobody's, and live on.
func Stop() {
	running.Lock()
	running.stopped = true
	running.Unlock()
	for _, end := range []func(int, *program){ask, byGuard, kill} {
		for _, p := range each(end) {
			select {
			case <-p.ended:
			case <-time.After(grace):
			}
		}
	}
}

// A group that has ended is no longer there.
func ask(pid int, _ *program)  { _ = unix.Kill(-pid, unix.SIGTERM) }
func kill(pid int, _ *program) { _ = unix.Kill(-pid, unix.SIGKILL) }

func byGuard(pid int, p *program) {
	if p.guard == nil {
		kill(pid, p)
	} else {
		p.guard()
	}
}

// each does something to all that have not ended. None is reaped meanwhile: its number
// is not another's.
func each(do func(int, *program)) (list []*program) {
	running.Lock()
	defer running.Unlock()
	for pid, p := range running.pids {
		do(pid, p)
		list = append(list, p)
	}
	return list
}
