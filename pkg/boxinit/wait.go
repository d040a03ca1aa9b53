package boxinit

import (
	"os"

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
func wait(control *os.File, program int) {
	t, _, err := wire.ReadFrame(control, 0)
	if err != nil || t != wire.TypeAck {
		os.Exit(1)
	}
	go watch(control)
	status, usage := reapUntil(program)
	report(control, &wire.Report{
		Type:     wire.TypeExited,
		Status:   uint32(status),
		UserUS:   micros(usage.Utime),
		SystemUS: micros(usage.Stime),
	}, nil)
}

// watch waits for the supervisor's end: init goes with it, even if the
// parent-death signal is lost.
func watch(control *os.File) {
	wire.ReadFrame(control, 0)
	os.Exit(1)
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
