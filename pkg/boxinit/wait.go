package boxinit

import (
	"os"
	"time"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// wait is PID 1's life: wait until the supervisor has read back what it needs,
// then reap every orphan until the program itself has ended, and report it.
// When init exits the kernel kills whatever is left in the PID namespace.
//
// The program stays a zombie until the supervisor has acknowledged Started, so
// that its /proc entry can be read back however soon it ends. The first read is
// on this thread: a second one would have to be woken for it.
//
// The clock of the time limit is the supervisor's. Init has a later one: whoever
// stops the supervisor would stop the first, and the program ran on without it.
func (b *box) wait() {
	until := b.released()
	go watch(b.control, until)
	status, usage := reapUntil(b.pid)
	if b.waiting != nil {
		if err := b.waiting.Failure(); err != nil {
			b.fail("start program", err)
		}
	}
	b.exited(status, usage)
}

// exited tells of the program's end, which is init's.
func (b *box) exited(status unix.WaitStatus, usage unix.Rusage) {
	report(b.control, &wire.Report{
		Type:     wire.TypeExited,
		Status:   uint32(status),
		At:       uint64(time.Now().UnixNano()),
		UserUS:   micros(usage.Utime),
		SystemUS: micros(usage.Stime),
	}, nil)
	os.Exit(0)
}

// limitUntil is when the program's time is up, if it begins now.
func limitUntil(c *wire.Config) time.Time {
	return time.Now().Add(time.Duration(c.Limit) * time.Millisecond)
}

// watch waits for the supervisor's end: init goes with it, even if the
// parent-death signal is lost, and at the latest when the time is up.
func watch(control int, until time.Time) {
	await(control, until)
	wire.ReadFrameWithFiles(control, 0, 0)
	os.Exit(1)
}

// await returns when there is something to read, or ends init when the time is
// up. It is one system call on the thread that would wait in read: a timer of
// the runtime's would have to have a thread more, which could count against the
// program. The clock is the monotonic one, and no signal from inside is caught,
// so nothing that the program does moves it.
func await(control int, until time.Time) {
	const most = 1 << 30 // ms, what fits into poll's int
	fds := []unix.PollFd{{Fd: int32(control), Events: unix.POLLIN}}
	for {
		left := time.Until(until)
		if left <= 0 {
			os.Exit(1)
		}
		n, err := unix.Poll(fds, int(min(left.Milliseconds()+1, most)))
		switch {
		case err == unix.EINTR:
		case err != nil:
			report(control, failure(&wire.Config{}, "time limit", err), nil)
			os.Exit(1)
		case n > 0:
			return
		}
	}
}

// reapUntil reaps children of any kind until the program has ended.
func reapUntil(program int) (unix.WaitStatus, unix.Rusage) {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, 0, &usage)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			os.Exit(1)
		}
		if pid == program {
			return status, usage
		}
	}
}

func micros(t unix.Timeval) uint64 { return uint64(t.Sec)*1e6 + uint64(t.Usec) }
