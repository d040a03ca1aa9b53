package main

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// running are the machines' process groups, which a signal to us ends: an
// emulator that nobody waits for would go on for as long as it may.
var running groups

type groups struct {
	mu      sync.Mutex
	started []int
	stopped bool
}

// start starts cmd in a process group of its own.
func (g *groups) start(cmd *exec.Cmd) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return os.ErrProcessDone
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	if err == nil {
		g.started = append(g.started, cmd.Process.Pid)
	}
	return err
}

// wait waits for one that start started: its number is free then.
func (g *groups) wait(cmd *exec.Cmd) error {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.started = slices.DeleteFunc(g.started, func(pid int) bool { return pid == cmd.Process.Pid })
	}()
	return cmd.Wait()
}

// stop ends all of them.
func (g *groups) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for _, pid := range g.started {
		syscall.Kill(-pid, syscall.SIGTERM)
	}
}

// stopOnSignal ends the machines and then this process, as the signal would.
func (g *groups) stopOnSignal() {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		sig := (<-got).(syscall.Signal)
		g.stop()
		os.Exit(128 + int(sig))
	}()
}
