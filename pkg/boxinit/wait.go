package boxinit

import (
	"os"

	"sandglass/internal/sys"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// wait is PID 1's life: reap every orphan until the program itself has ended,
// report it, and wait for the supervisor's leave to go. When init exits the
// kernel kills whatever is left in the PID namespace.
//
// The program stays a zombie until the supervisor has acknowledged Started, so
// that its /proc entry can be read back however soon it ends.
func wait(control *os.File, program int) {
	acked := make(chan struct{})
	go watch(control, acked)
	status, usage := reapUntil(program, acked)
	report(control, &wire.Report{
		Type:     wire.TypeExited,
		Status:   uint32(status),
		UserUS:   micros(usage.Utime),
		SystemUS: micros(usage.Stime),
	}, nil)
}

// watch reads the supervisor's one message, then waits for its end: init goes
// with it, even if the parent-death signal is lost.
func watch(control *os.File, acked chan<- struct{}) {
	t, _, err := wire.ReadFrame(control, 0)
	if err != nil || t != wire.TypeAck {
		os.Exit(1)
	}
	close(acked)
	wire.ReadFrame(control, 0)
	os.Exit(1)
}

// reapUntil waits for children of any kind. The program is looked at with
// WNOWAIT first, and reaped only after the acknowledgement.
func reapUntil(program int, acked <-chan struct{}) (unix.WaitStatus, unix.Rusage) {
	for {
		pid, err := sys.WaitAny()
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			os.Exit(1)
		}
		if pid == program {
			<-acked
		}
		var status unix.WaitStatus
		var usage unix.Rusage
		got, err := unix.Wait4(pid, &status, 0, &usage)
		if err == nil && got == program {
			return status, usage
		}
	}
}

func micros(t unix.Timeval) uint64 { return uint64(t.Sec)*1e6 + uint64(t.Usec) }
