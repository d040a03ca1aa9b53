package denials

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/sys"
	"sandglass/pkg/seccomp/sysnum"

	"golang.org/x/sys/unix"
)

// callName is the call's name, or its number for one that the table lacks.
func callName(nr uint32) string {
	if name, ok := sysnum.Name(runtime.GOARCH, nr); ok {
		return name
	}
	return "syscall_" + strconv.FormatUint(uint64(nr), 10)
}

// arguments are those that a profile decides by, in words where there are any.
// All are registers: nothing of the program's memory is read.
func arguments(n *sys.Notification) string {
	a := n.Args
	switch callName(n.Nr) {
	case "socket", "socketpair":
		return word(families(), a[0]) + ", " + word(types(), a[1]&0xf) + ", " + number(a[2]&0xffffffff)
	case "ptrace":
		return word(traces(), a[0])
	case "clone", "unshare":
		return flags(a[0])
	case "setns":
		return flags(a[1])
	case "ioctl", "fcntl":
		return word(commands(), a[1]&0xffffffff)
	case "prctl", "seccomp", "keyctl", "bpf", "personality":
		return hex(a[0] & 0xffffffff)
	case "setsockopt":
		return number(a[1]&0xffffffff) + ", " + number(a[2]&0xffffffff)
	case "mknod":
		return octal(a[1])
	case "mknodat":
		return octal(a[2])
	case "chmod", "fchmod", "creat":
		return special(a[1])
	case "fchmodat", "fchmodat2", "open":
		return special(a[2])
	case "openat":
		return special(a[3])
	}
	return ""
}

// special is a mode that is refused for its set-uid or set-gid bit.
func special(mode uint64) string {
	if mode&06000 == 0 {
		return ""
	}
	return octal(mode)
}

func hex(n uint64) string   { return "0x" + strconv.FormatUint(n, 16) }
func octal(n uint64) string { return "0" + strconv.FormatUint(n&0xffff, 8) }

func word(words map[uint64]string, n uint64) string {
	if w := words[n&0xffffffff]; w != "" {
		return w
	}
	return hex(n & 0xffffffff)
}

// flags are the namespaces that are asked for.
func flags(n uint64) string {
	var list []string
	for bit, name := range map[uint64]string{
		unix.CLONE_NEWUSER: "CLONE_NEWUSER", unix.CLONE_NEWNS: "CLONE_NEWNS", unix.CLONE_NEWPID: "CLONE_NEWPID",
		unix.CLONE_NEWNET: "CLONE_NEWNET", unix.CLONE_NEWIPC: "CLONE_NEWIPC", unix.CLONE_NEWUTS: "CLONE_NEWUTS",
		unix.CLONE_NEWCGROUP: "CLONE_NEWCGROUP",
	} {
		if n&bit != 0 {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return hex(n)
	}
	slices.Sort(list)
	return strings.Join(list, "|")
}

// Functions and not variables, which every start would pay for.

func families() map[uint64]string {
	return map[uint64]string{
		unix.AF_UNIX: "AF_UNIX", unix.AF_INET: "AF_INET", unix.AF_INET6: "AF_INET6", unix.AF_NETLINK: "AF_NETLINK",
		unix.AF_PACKET: "AF_PACKET", unix.AF_ALG: "AF_ALG", unix.AF_VSOCK: "AF_VSOCK", unix.AF_BLUETOOTH: "AF_BLUETOOTH",
		unix.AF_CAN: "AF_CAN", unix.AF_KEY: "AF_KEY", unix.AF_XDP: "AF_XDP", unix.AF_TIPC: "AF_TIPC",
	}
}

func types() map[uint64]string {
	return map[uint64]string{
		unix.SOCK_STREAM: "SOCK_STREAM", unix.SOCK_DGRAM: "SOCK_DGRAM", unix.SOCK_RAW: "SOCK_RAW",
		unix.SOCK_SEQPACKET: "SOCK_SEQPACKET", unix.SOCK_PACKET: "SOCK_PACKET",
	}
}

func traces() map[uint64]string {
	return map[uint64]string{
		unix.PTRACE_TRACEME: "PTRACE_TRACEME", unix.PTRACE_PEEKTEXT: "PTRACE_PEEKTEXT", unix.PTRACE_PEEKDATA: "PTRACE_PEEKDATA",
		unix.PTRACE_POKETEXT: "PTRACE_POKETEXT", unix.PTRACE_POKEDATA: "PTRACE_POKEDATA", unix.PTRACE_CONT: "PTRACE_CONT",
		unix.PTRACE_ATTACH: "PTRACE_ATTACH", unix.PTRACE_DETACH: "PTRACE_DETACH", unix.PTRACE_SEIZE: "PTRACE_SEIZE",
		unix.PTRACE_SYSCALL: "PTRACE_SYSCALL", unix.PTRACE_SETOPTIONS: "PTRACE_SETOPTIONS",
	}
}

func commands() map[uint64]string {
	return map[uint64]string{
		unix.TIOCSTI: "TIOCSTI", unix.TIOCSETD: "TIOCSETD", unix.TIOCCONS: "TIOCCONS", unix.TIOCLINUX: "TIOCLINUX",
		unix.F_SETLEASE: "F_SETLEASE", fSetDeleg: "F_SETDELEG", unix.F_OFD_SETLK: "F_OFD_SETLK", unix.F_OFD_SETLKW: "F_OFD_SETLKW",
	}
}

const fSetDeleg = 1024 + 16 // F_SETDELEG, Linux 6.19
