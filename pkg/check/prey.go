package check

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// prey is a process of the host that the signals probe tries to kill.
type prey struct {
	cmd  *exec.Cmd
	once sync.Once
	end  syscall.WaitStatus
}

func (b *bait) startPrey() error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{victimArg0, preyMode}
	// It lives until its stdin ends, so that it goes when this process is killed.
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.prey.cmd = cmd
	b.later(func() { b.prey.alive() })
	return nil
}

// alive ends it with SIGTERM and says whether that was what ended it: the
// kernel settles at once, in the order of sending, which fatal signal counts.
// SIGTERM may also meet a Go program that is not set up yet; it ends both.
func (p *prey) alive() bool {
	p.once.Do(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.cmd.Wait()
		p.end, _ = p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	})
	return p.end.Signaled() && p.end.Signal() == syscall.SIGTERM
}

func preyMain() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
