package probes

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ids tries to become somebody else, and says who it is.
func ids([]string) {
	say("uid", strconv.Itoa(os.Getuid()))
	groups, _ := os.Getgroups()
	say("groups", strconv.Itoa(len(groups)))
	for _, c := range []struct {
		name string
		nr   uintptr
		args [3]uintptr
	}{
		{"setuid", unix.SYS_SETUID, [3]uintptr{0}},
		{"setgid", unix.SYS_SETGID, [3]uintptr{0}},
		{"setresuid", unix.SYS_SETRESUID, [3]uintptr{0, 0, 0}},
		{"setgroups", unix.SYS_SETGROUPS, [3]uintptr{0, 0}},
		{"ambient", unix.SYS_PRCTL, [3]uintptr{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN}},
		{"securebits", unix.SYS_PRCTL, [3]uintptr{unix.PR_SET_SECUREBITS, 0}},
	} {
		_, _, e := unix.RawSyscall(c.nr, c.args[0], c.args[1], c.args[2])
		try(c.name, e)
	}
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	try("capset", unix.Capset(hdr, &all[0]))
	n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	say("no_new_privs", strconv.Itoa(n)+outcome(err))
}

// userNamespace starts a process in a new user namespace, and asks for one in
// the process itself.
func userNamespace([]string) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{Arg0, "hello"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	try("clone NEWUSER", cmd.Run())
	// A process with threads may not: EINVAL without the filter.
	try("unshare NEWUSER", unix.Unshare(unix.CLONE_NEWUSER))
}

// fileCaps gives a file every capability: struct vfs_cap_data, revision 2.
const fileCaps = "\x01\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

// setID tries to leave a program behind that runs as its owner.
func setID(dirs []string) {
	for _, dir := range dirs {
		path := dir + "/program"
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o755)
		if !try("create in "+dir, err) {
			continue
		}
		try("chmod u+s in "+dir, unix.Chmod(path, unix.S_ISUID|0o755))
		try("chmod g+s in "+dir, unix.Chmod(path, unix.S_ISGID|0o755))
		try("fchmod u+s in "+dir, unix.Fchmod(fd, unix.S_ISUID|0o755))
		unix.Close(fd)
		fd, err = unix.Open(dir+"/created", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, unix.S_ISUID|0o755)
		if try("create u+s in "+dir, err) {
			unix.Close(fd)
		}
		try("setxattr capability in "+dir, unix.Setxattr(path, "security.capability", []byte(fileCaps), 0))
	}
}

// executable tries to write to the file that this very process runs from
// (CVE-2019-5736).
func executable([]string) {
	for _, path := range []string{"/proc/self/exe", Arg0, "/proc/thread-self/exe"} {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if try("write "+path, err) {
			unix.Close(fd)
		}
	}
	try("unlink "+Arg0, unix.Unlink(Arg0))
	try("chmod "+Arg0, unix.Chmod(Arg0, 0o777))
}

// Injected is the byte that terminal types.
const Injected = 'x'

// terminal opens a terminal of its own and types into it with TIOCSTI, with and
// without the high bits that a filter must not look at (CVE-2019-10063).
func terminal([]string) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if !try("open /dev/ptmx", err) {
		return
	}
	unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if !try("TIOCGPTN", err) {
		return
	}
	// Without O_NOCTTY: it becomes the controlling terminal of this session,
	// so that the kernel itself would not object.
	tty, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if !try("open terminal", err) {
		return
	}
	try("TIOCSTI", unix.IoctlSetPointerInt(tty, unix.TIOCSTI, Injected))
	try("TIOCSTI with high bits", unix.IoctlSetPointerInt(tty, unix.TIOCSTI|1<<32, Injected))
	try("TIOCLINUX", unix.IoctlSetPointerInt(tty, 0x541c, 3))
	try("TIOCSETD", unix.IoctlSetPointerInt(tty, 0x5423, 0))
	_, err = unix.Open("/dev/tty0", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	try("open /dev/tty0", err)
	_, err = unix.Open("/dev/console", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	try("open /dev/console", err)
}
