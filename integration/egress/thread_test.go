package egress

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// place is a network namespace, and for the host a mount namespace too, with a
// thread that stays in it. Sockets made there stay of it, whoever uses them.
type place struct {
	calls chan func()
	tid   int
	net   *os.File
	mnt   *os.File // nil without one of its own
}

// newPlace makes the namespaces. They are gone with the test.
func newPlace(t *testing.T, flags int) *place {
	t.Helper()
	p := &place{calls: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ready <- p.open(flags)
		for f := range p.calls {
			f()
		}
	}()
	t.Cleanup(func() { close(p.calls) })
	if err := <-ready; err != nil {
		t.Fatalf("namespaces of the test: %v", err)
	}
	t.Cleanup(func() {
		p.net.Close()
		p.mnt.Close()
	})
	return p
}

func (p *place) open(flags int) (err error) {
	if err := unix.Unshare(flags | unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	p.tid = unix.Gettid()
	if p.net, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	if flags&unix.CLONE_NEWNS == 0 {
		return nil
	}
	p.mnt, err = os.Open("/proc/thread-self/ns/mnt")
	return err
}

// do calls f there.
func (p *place) do(f func() error) error {
	done := make(chan error, 1)
	p.calls <- func() { done <- f() }
	return <-done
}

// enter moves the calling goroutine there for the rest of its life: what it
// starts is started there. A subtest is a goroutine of its own.
func (p *place) enter(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_FS)
	if err == nil {
		err = unix.Setns(int(p.net.Fd()), unix.CLONE_NEWNET)
	}
	if err == nil && p.mnt != nil {
		err = unix.Setns(int(p.mnt.Fd()), unix.CLONE_NEWNS)
	}
	if err != nil {
		t.Fatalf("entering the test's host: %v", err)
	}
}
