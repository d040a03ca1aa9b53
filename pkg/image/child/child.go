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
	pids    map[int]chan struct{} // closed when it has ended
	stopped bool
}{pids: map[int]chan struct{}{}}

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
		running.pids[cmd.Process.Pid] = make(chan struct{})
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
	if ended := running.pids[pid]; ended != nil {
		delete(running.pids, pid)
		close(ended)
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
const grace = 5 * time.Second

// Stop ends all groups, and returns when their leaders have ended.
func Stop() {
	running.Lock()
	running.stopped = true
	running.Unlock()
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, ended := range send(sig) {
			select {
			case <-ended:
			case <-time.After(grace):
			}
		}
	}
}

// send sends a signal to all groups, and says when each has ended.
func send(sig unix.Signal) (list []chan struct{}) {
	running.Lock()
	defer running.Unlock()
	for pid, ended := range running.pids {
		_ = unix.Kill(-pid, sig) // one that has ended is no longer there
		list = append(list, ended)
	}
	return list
}
