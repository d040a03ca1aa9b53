package sys

import "golang.org/x/sys/unix"

// TerminalPeer opens the other side of a pseudo-terminal by its master
// (TIOCGPTPEER of ioctl_tty(2)), not as this session's own terminal.
func TerminalPeer(master int) (int, error) {
	fd, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}
