package boxinit

import (
	"os"
	"time"

	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// awaitRelease is where a sandbox waits that is made before there is a program
// for it. Nothing of a request is inside yet. The program's process is there, with
// every control on it, and init is as confined as it ever is; what comes is what to
// execute, and files. They are put in their place as those of an ordinary run, and
// the way to write to the root is gone before anything is executed.
func (b *box) awaitRelease() error {
	await(b.control, idleUntil(b.cfg))
	t, body, files := receive(b.control)
	if t != wire.TypeRelease {
		return wire.ErrMalformed
	}
	r, err := wire.DecodeRelease(body)
	if err != nil {
		return err
	}
	if err := place(b.later, r, files); err != nil {
		return err
	}
	b.later.Close()
	b.cfg.Paths, b.cfg.Limit = r.Paths, r.Limit
	if err := refuseOwnExe(r.Paths); err != nil {
		return err
	}
	var status unix.WaitStatus
	var usage unix.Rusage
	if pid, _ := unix.Wait4(b.pid, &status, unix.WNOHANG, &usage); pid == b.pid {
		b.exited(status, usage) // without Executes: it has run nothing
	}
	// Before the execve, and with the moment: the program could keep init from the CPUs,
	// and its own clock from starting.
	report(b.control, &wire.Report{Type: wire.TypeExecutes, At: uint64(time.Now().UnixNano())}, nil)
	return b.waiting.Exec(r.Paths, r.Argv, r.Env)
}

// place makes the files of a release from what came with it, which init does not
// keep.
func place(later *mount.Later, r *wire.Release, files []int) error {
	defer func() {
		for _, fd := range files {
			unix.Close(fd)
		}
	}()
	for _, list := range [...][]wire.Op{r.Code, r.Files} {
		for i := range list {
			if err := number(files, &list[i].FD); err != nil {
				return err
			}
		}
	}
	if err := later.Make(r.Code); err != nil {
		return err
	}
	return mount.CopyInto(r.Files)
}

// idleUntil is when nobody wants what waits any more.
func idleUntil(c *wire.Config) time.Time {
	return time.Now().Add(time.Duration(c.Idle) * time.Millisecond)
}

// ackTime is how long a supervisor may take to look at a program that was started,
// whatever the program's time limit. One that waited for a CPU for two seconds, among
// 64 runs on two, found that its program had been ended by init's clock, and could
// vouch for nothing.
const ackTime = 10 * time.Second

// released waits for the first word after the program's start: that it may be reaped, or,
// where it waits for its text, that the text is coming, or what it is to execute: its
// time counts from then on.
func (b *box) released() time.Time {
	switch b.cfg.Waits {
	case wire.InitWaits:
		if err := b.awaitRelease(); err != nil {
			b.fail("start program", err)
		}
		return limitUntil(b.cfg)
	case wire.ProgramWaits:
		await(b.control, idleUntil(b.cfg))
	default:
		await(b.control, time.Now().Add(max(ackTime, time.Duration(b.cfg.Limit)*time.Millisecond)))
		if t, _, _, err := wire.ReadFrameWithFiles(b.control, 0, 0); err != nil || t != wire.TypeAck {
			os.Exit(1)
		}
		return limitUntil(b.cfg)
	}
	t, body, _, err := wire.ReadFrameWithFiles(b.control, wire.MaxReport, 0)
	if err != nil || t != wire.TypeRelease {
		os.Exit(1)
	}
	r, err := wire.DecodeRelease(body)
	if err != nil {
		os.Exit(1)
	}
	b.cfg.Limit = r.Limit
	return limitUntil(b.cfg)
}
