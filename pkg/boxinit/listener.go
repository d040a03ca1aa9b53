package boxinit

import (
	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// startShared starts the program where its filter has a listener. The filter
// comes last, when next to nothing may be called any more, so the program's own
// process cannot hand the listener on. Instead it works in init's table of
// descriptors: the listener appears there, execve gives the process a copy of
// the table without what is close-on-exec, which is everything but stdio, and
// init keeps the listener.
//
// At the execve init's table is therefore within reach of the path that is
// executed (CVE-2024-21626 is that class). So what leads to files of the host
// is closed before, and a control group's directory leads to no file that could
// be executed.
func startShared(b *box, p *sys.Program) error {
	for i := range b.cfg.Mounts {
		if fd := &b.cfg.Mounts[i].FD; *fd > ControlFD {
			unix.Close(int(*fd))
			*fd = -1
		}
	}
	var own [3]int // init's own stdio: the program's goes into its places
	for i := range own {
		fd, err := unix.FcntlInt(uintptr(i), unix.F_DUPFD_CLOEXEC, ControlFD+1)
		if err != nil {
			return err
		}
		own[i] = fd
	}
	p.ShareFiles = true
	var err error
	b.pid, b.pidfd, err = sys.Start(p)
	b.listener = p.Listener
	for i, fd := range own {
		if e := unix.Dup3(fd, i, 0); e != nil && err == nil {
			err = e
		}
		unix.Close(fd)
	}
	return err
}
