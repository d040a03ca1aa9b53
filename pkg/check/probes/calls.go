package probes

import "golang.org/x/sys/unix"

// Call is one system call that the default filter refuses, and the exact error
// with which it does. The arguments are such that the call does no harm where
// it is let through: it then fails with another error, or makes a descriptor.
type Call struct {
	Group string
	Name  string
	Nr    uintptr
	Args  [6]uintptr
	Want  string
}

const bad = ^uintptr(0) // a descriptor, address or flags that no call takes

// Calls are all of them.
func Calls() []Call {
	return append([]Call{
		{"namespaces", "unshare NEWNS", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNS}, "EPERM"},
		{"namespaces", "unshare NEWPID", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWPID}, "EPERM"},
		{"namespaces", "unshare NEWNET", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNET}, "EPERM"},
		{"namespaces", "setns", unix.SYS_SETNS, [6]uintptr{bad, 0}, "EPERM"},
		{"namespaces", "clone3", unix.SYS_CLONE3, [6]uintptr{0, 0}, "ENOSYS"},

		{"mount", "mount", unix.SYS_MOUNT, [6]uintptr{}, "EPERM"},
		{"mount", "umount2", unix.SYS_UMOUNT2, [6]uintptr{}, "EPERM"},
		{"mount", "pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{}, "EPERM"},
		{"mount", "chroot", unix.SYS_CHROOT, [6]uintptr{}, "EPERM"},
		{"mount", "open_tree", unix.SYS_OPEN_TREE, [6]uintptr{bad}, "EPERM"},
		{"mount", "move_mount", unix.SYS_MOVE_MOUNT, [6]uintptr{bad}, "EPERM"},
		{"mount", "fsopen", unix.SYS_FSOPEN, [6]uintptr{}, "EPERM"},
		{"mount", "fsmount", unix.SYS_FSMOUNT, [6]uintptr{bad}, "EPERM"},
		{"mount", "mount_setattr", unix.SYS_MOUNT_SETATTR, [6]uintptr{bad}, "EPERM"},

		{"trace", "ptrace", unix.SYS_PTRACE, [6]uintptr{bad}, "EPERM"},
		{"trace", "process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{}, "EPERM"},
		{"trace", "process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{}, "EPERM"},
		{"trace", "pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{bad}, "EPERM"},
		{"trace", "kcmp", unix.SYS_KCMP, [6]uintptr{}, "EPERM"},

		{"kernel", "bpf", unix.SYS_BPF, [6]uintptr{bad}, "EPERM"},
		{"kernel", "perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{}, "EPERM"},
		{"kernel", "userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{bad}, "EPERM"},
		{"io_uring", "io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{1, 0}, "ENOSYS"},
		{"io_uring", "io_uring_enter", unix.SYS_IO_URING_ENTER, [6]uintptr{bad}, "ENOSYS"},
		{"io_uring", "io_uring_register", unix.SYS_IO_URING_REGISTER, [6]uintptr{bad}, "ENOSYS"},
		{"kernel", "fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{bad}, "EPERM"},
		{"kernel", "name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{bad}, "EPERM"},
		{"kernel", "open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{bad}, "EPERM"},

		{"host", "init_module", unix.SYS_INIT_MODULE, [6]uintptr{}, "EPERM"},
		{"host", "finit_module", unix.SYS_FINIT_MODULE, [6]uintptr{bad}, "EPERM"},
		{"host", "delete_module", unix.SYS_DELETE_MODULE, [6]uintptr{}, "EPERM"},
		{"host", "kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{0, 0, 0, bad}, "EPERM"},
		{"host", "reboot", unix.SYS_REBOOT, [6]uintptr{}, "EPERM"}, // without its magic numbers
		{"host", "swapon", unix.SYS_SWAPON, [6]uintptr{}, "EPERM"},
		{"host", "syslog", unix.SYS_SYSLOG, [6]uintptr{bad}, "EPERM"},
		{"host", "settimeofday", unix.SYS_SETTIMEOFDAY, [6]uintptr{bad, bad}, "EPERM"},
		{"host", "clock_settime", unix.SYS_CLOCK_SETTIME, [6]uintptr{bad}, "EPERM"},
		{"host", "sethostname", unix.SYS_SETHOSTNAME, [6]uintptr{0, 1}, "EPERM"},
		{"host", "quotactl", unix.SYS_QUOTACTL, [6]uintptr{bad}, "EPERM"},
	}, socketCalls()...)
}

// socketCalls are the kinds of socket that lead past the network namespace or
// into code of the kernel that is seldom tested.
func socketCalls() []Call {
	s := func(name string, family, kind, proto uintptr, want string) Call {
		return Call{"sockets", name, unix.SYS_SOCKET, [6]uintptr{family, kind | unix.SOCK_CLOEXEC, proto}, want}
	}
	return []Call{
		s("raw IPv4", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, "EPERM"),
		s("raw IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, "EPERM"),
		s("packet", unix.AF_PACKET, unix.SOCK_RAW, 0, "EAFNOSUPPORT"),
		s("vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, "EAFNOSUPPORT"),
		s("AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, "EAFNOSUPPORT"),
		s("bluetooth", unix.AF_BLUETOOTH, unix.SOCK_STREAM, 3, "EAFNOSUPPORT"),
		s("XDP", unix.AF_XDP, unix.SOCK_RAW, 0, "EAFNOSUPPORT"),
		s("netlink route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, "EAFNOSUPPORT"),
		s("netlink audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, "EAFNOSUPPORT"),
		s("netlink netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, "EAFNOSUPPORT"),
		s("SCTP", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, "EAFNOSUPPORT"),
	}
}

// calls makes the calls of a group.
func calls(groups []string) {
	for _, c := range Calls() {
		for _, g := range groups {
			if c.Group == g {
				_, _, e := unix.Syscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
				try(c.Name, e)
			}
		}
	}
}

// foreign makes a call under a number of another interface. The kernel ends
// the process; where it does not, the answer says so.
func foreign([]string) {
	if ForeignCalls == "" {
		return
	}
	_, _, e := unix.Syscall(unix.SYS_GETPID|x32Bit, 0, 0, 0)
	try(ForeignCalls, e)
}

// i386Exit is a whole 32-bit program: it calls exit(7) through int 0x80.
const i386Exit = "\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" + // e_ident: 32 bit, little endian
	"\x02\x00\x03\x00\x01\x00\x00\x00\x54\x80\x04\x08\x34\x00\x00\x00" + // ET_EXEC, EM_386, entry, e_phoff
	"\x00\x00\x00\x00\x00\x00\x00\x00\x34\x00\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x80\x04\x08\x00\x80\x04\x08" + // PT_LOAD at 0x08048000
	"\x60\x00\x00\x00\x60\x00\x00\x00\x05\x00\x00\x00\x00\x10\x00\x00" +
	"\xb8\x01\x00\x00\x00\xbb\x07\x00\x00\x00\xcd\x80" // mov $1,%eax; mov $7,%ebx; int $0x80

// i386 becomes a program of another architecture, whose calls have other
// numbers than the filter's. args is a directory to put it in.
func i386(args []string) {
	path := "/tmp/i386"
	if len(args) > 0 {
		path = args[0] + "/i386"
	}
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o700)
	if !try("create", err) {
		return
	}
	unix.Write(fd, []byte(i386Exit))
	unix.Close(fd)
	try("execve", unix.Exec(path, []string{path}, nil))
}
