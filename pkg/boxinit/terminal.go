package boxinit

import (
	"sandglass/internal/sys"
	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// openTerminal makes the program's terminal in the sandbox's own devpts, where
// its name means the same inside. The host's terminal is never inside: what is
// typed into this one (TIOCSTI, CVE-2017-5226) or set in it is the sandbox's.
//
// The supervisor gets the master. Init keeps the other side open until its end:
// a program that closes it, and opens /dev/tty later, still has a terminal, and
// the supervisor reads to the end when nothing of the sandbox is left.
func openTerminal(b *box) error {
	if !b.cfg.Terminal {
		return nil
	}
	master, err := openMaster()
	if err != nil {
		return &mount.Error{Op: "terminal: open /dev/pts/ptmx", Errno: err.(unix.Errno)}
	}
	slave, err := openSlave(master, b.cfg)
	if err != nil {
		return &mount.Error{Op: "terminal", Errno: err.(unix.Errno)}
	}
	b.cfg.Stdin, b.cfg.Stdout, b.cfg.Stderr = int32(slave), int32(slave), int32(slave)
	report(b.control, &wire.Report{Type: wire.TypeTerminal}, []int{master})
	return nil
}

// openMaster opens the multiplexer of the devpts that was mounted for this
// sandbox, and no other's.
func openMaster() (int, error) {
	return unix.Openat2(unix.AT_FDCWD, "/dev/pts/ptmx", &unix.OpenHow{
		Flags:   unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// openSlave opens the other side by the master and not by its name.
func openSlave(master int, cfg *wire.Config) (int, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, err
	}
	size := &unix.Winsize{Row: cfg.Rows, Col: cfg.Cols}
	if err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, size); err != nil {
		return -1, err
	}
	return sys.TerminalPeer(master)
}
