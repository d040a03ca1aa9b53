// Package causes holds what is known of hosts that cannot give a control: the
// cause in words, and what to paste. The refusals of run and the lines of
// doctor come from here, so that they cannot say different things.
//
// Nothing here decides whether a host can do something: that is found out by
// trying. What is read here (a sysctl, a capability set) only names the cause of
// what has failed already.
package causes

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Cause is why this host refuses something. Text is one line, lower case; an
// empty one means that nothing is known.
type Cause struct {
	Text  string
	Hints []string
}

// oldKernel is what a call that is not there means where no filter is on us.
const oldKernel = "Linux 5.12 or newer is required"

// CloneFailed explains why init could not be started in new namespaces. step is
// "clone", "map ids", or the call of init's process that failed.
func CloneFailed(step string, errno syscall.Errno) Cause { return here().cloneFailed(step, errno) }

func (h host) cloneFailed(step string, errno syscall.Errno) Cause {
	if h.wsl() == 1 {
		return Cause{
			Text:  "version 1 of the Windows Subsystem for Linux is no Linux kernel and has no namespaces",
			Hints: []string{"wsl --set-version DISTRIBUTION 2   # in Windows"},
		}
	}
	switch errno {
	case syscall.ENOSPC:
		return h.usedUp()
	case syscall.ENOSYS:
		return h.noCall(step + ": this kernel lacks a system call that sandglass needs")
	case syscall.ETOOMANYREFS:
		return Cause{
			Text:  "too many descriptors of this user are on their way through sockets, more than the hard limit on open files",
			Hints: []string{"ulimit -Hn   # too low; or a program of this user that sends descriptors nobody takes"},
		}
	case syscall.EAGAIN:
		if step == "clone" {
			return Cause{
				Text:  "no process can be started: the user's limit on processes, or that of a control group, is used up",
				Hints: []string{"ulimit -u   # the user's limit", "ps -eLf | wc -l   # what there is"},
			}
		}
	case syscall.EINVAL:
		switch step {
		case "clone":
			return h.notBuiltIn()
		case "seal descriptors": // close_range(2) with CLOSE_RANGE_CLOEXEC, since 5.11
			return Cause{Text: step + ": this kernel does not take close_range(2)'s flags: " + oldKernel, Hints: []string{"uname -r"}}
		}
	case syscall.EROFS:
		if step == "map ids" {
			return Cause{
				Text:  "/proc is read-only on this host, so the sandbox's ids cannot be mapped",
				Hints: append([]string{"mount -o remount,rw /proc   # as root"}, h.outer(unmaskProc)...),
			}
		}
	case syscall.EPERM, syscall.EACCES:
		var needs []string
		what := "user namespaces cannot be made or mapped: " + step + ": " + errno.Error()
		if step == "pidfd_send_signal" {
			what = "a process cannot be ended by its pidfd, so no limit on time could be held: " + errno.Error()
			needs = []string{"KILL"} // root's sandboxes have other ids
		}
		if step == "map ids" {
			needs = []string{"SETFCAP"} // for user 0 of the namespace above (verify_root_map in kernel/user_namespace.c)
		}
		return h.denied(what, needs, toRun)
	}
	return Cause{Text: fmt.Sprintf("cannot start the sandbox's init: %s: %v", step, errno)}
}

// namespaces as /proc/sys/user and /proc/self/ns call them, and as people do.
var namespaces = [...]struct{ file, sysctl, name string }{
	{"user", "user", "user"}, {"mnt", "mnt", "mount"}, {"pid", "pid", "PID"}, {"net", "net", "network"}, {"ipc", "ipc", "IPC"}, {"uts", "uts", "UTS"},
}

// usedUp names the kind of namespace of which there may be no more.
func (h host) usedUp() Cause {
	for _, ns := range namespaces {
		setting := "user.max_" + ns.sysctl + "_namespaces"
		if h.sysctl("user/max_"+ns.sysctl+"_namespaces") == "0" {
			return Cause{
				Text:  ns.name + " namespaces cannot be made: " + setting + " is 0",
				Hints: []string{"sysctl -w " + setting + "=15000   # " + price},
			}
		}
	}
	return Cause{
		Text:  "user namespaces cannot be made: a limit of user.max_*_namespaces is used up, here or in a namespace above, or 32 are nested",
		Hints: []string{"sysctl user   # max_*_namespaces, here and on the outer host"},
	}
}

// notBuiltIn names the kind of namespace that the kernel was built without: then
// clone(2) answers EINVAL.
func (h host) notBuiltIn() Cause {
	for _, ns := range namespaces {
		if !h.exists("/proc/self/ns/" + ns.file) {
			return Cause{
				Text:  ns.name + " namespaces are not built into this kernel",
				Hints: []string{"zgrep _NS= /proc/config.gz   # a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and CONFIG_UTS_NS is needed"},
			}
		}
	}
	return Cause{Text: "this kernel does not take clone(2)'s flags for new namespaces: " + oldKernel, Hints: []string{"uname -r"}}
}

// noCall explains ENOSYS. A filter of an outer container gives the same answer
// as an old kernel (Docker's does for clone3).
func (h host) noCall(what string) Cause {
	if h.filtered() {
		return Cause{Text: what + ", or the seccomp filter that this process is under hides it", Hints: append([]string{"uname -r   # " + oldKernel}, h.outer(toRun)...)}
	}
	return Cause{Text: what + ": " + oldKernel, Hints: []string{"uname -r"}}
}

// StepFailed explains a step of init's set-up. Hints without a Text are for one
// that has said why itself.
func StepFailed(step string, errno syscall.Errno) Cause { return here().stepFailed(step, errno) }

func (h host) stepFailed(step string, errno syscall.Errno) Cause {
	denied := errno == syscall.EPERM || errno == syscall.EACCES
	mounting := strings.HasPrefix(step, "mount") || strings.HasPrefix(step, "make mounts") || strings.HasPrefix(step, "make root") ||
		strings.HasPrefix(step, "mask") || strings.HasPrefix(step, "landlock: allow message queues") || strings.HasPrefix(step, "detach") || step == "pivot_root" || step == "hostname"
	switch {
	case errno == syscall.ENOSYS:
		return h.noCall("this kernel lacks the system call")
	case step == "packet inside" && errno == syscall.EPERM:
		return Cause{
			Text: "a filter on addresses of the control group holds for the sandbox's own loopback too",
			Hints: []string{"systemctl edit UNIT   # IPAddressAllow=localhost 198.18.0.0/15 fd73:616e:6467::/64 and what is listed, beside IPAddressDeny=",
				"bpftool cgroup tree   # whose filter it is"},
		}
	case errno == syscall.EAFNOSUPPORT && step == "route of the listed hosts":
		return Cause{
			Text:  "a list of hosts needs a socket of netlink, which the seccomp filter that this process is under refuses",
			Hints: []string{"systemctl edit UNIT   # RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"},
		}
	case denied && h.appArmorRestricts():
		return h.appArmor()
	case denied && h.confinedBy() != "":
		return h.confined("")
	case step == "pivot_root" && errno == syscall.EINVAL:
		return Cause{
			Text: "the host's root is the initial ramfs, which pivot_root(2) refuses",
			Hints: []string{
				"unshare -m sh -c 'mkdir -p /mnt && mount --rbind / /mnt && cd /mnt && mount --move . / && exec chroot . sandglass run script.py'   # as root: with a root that is a mount of its own",
				"exec switch_root /newroot /sbin/init   # for good: in the host's initramfs",
			},
		}
	case step == "start program: seccomp" && errno == syscall.EINVAL:
		return Cause{Text: "seccomp filters are not built into this kernel", Hints: []string{"zgrep SECCOMP_FILTER= /proc/config.gz   # a kernel with CONFIG_SECCOMP_FILTER is needed"}}
	case strings.Contains(step, "/proc/sys/user") && errno == syscall.EROFS: // the step's own note has the cause
		return Cause{Hints: h.outer(unmaskProc)}
	case step == "mount /proc" && denied:
		return Cause{
			Text:  "an outer container masks parts of /proc, so a new one may not be mounted",
			Hints: append(h.outer(unmaskProc), "--proc none   # if the program needs no /proc"),
		}
	case denied && mounting:
		return h.denied("inside a user namespace this needs CAP_SYS_ADMIN", nil, toMount)
	}
	return Cause{}
}

// HostMountFailed explains a mount call that a root supervisor makes in the
// host's own namespaces, before there is a sandbox.
func HostMountFailed(errno syscall.Errno) Cause { return here().hostMountFailed(errno) }

func (h host) hostMountFailed(errno syscall.Errno) Cause {
	switch errno {
	case syscall.ENOSYS:
		return h.noCall("this kernel lacks the system call")
	case syscall.EPERM, syscall.EACCES:
		return h.denied("this needs CAP_SYS_ADMIN", []string{"SYS_ADMIN"}, toMountAsRoot)
	}
	return Cause{}
}

// denied finds who refuses what a kernel by itself would allow. needs are the
// capabilities that a root caller must have for it.
func (h host) denied(what string, needs []string, options need) Cause {
	switch missing := h.missing(needs); {
	case h.sysctl("kernel/unprivileged_userns_clone") == "0" && !h.has("SYS_ADMIN"):
		return Cause{
			Text:  "user namespaces are off for ordinary users: kernel.unprivileged_userns_clone is 0",
			Hints: []string{"sysctl -w kernel.unprivileged_userns_clone=1   # " + price},
		}
	case h.appArmorRestricts():
		return h.appArmor()
	case h.confinedBy() != "":
		return h.confined(what + "; ")
	case h.chrooted():
		return Cause{
			Text:  what + "; this process is in a chroot, where the kernel allows no user namespace",
			Hints: []string{"unshare --mount sh -c 'mount --rbind DIR DIR && cd DIR && pivot_root . . && umount -l . && exec sandglass run script.py'   # from outside, as root, in place of chroot DIR"},
		}
	case len(missing) > 0:
		return h.withoutCaps(what+"; ", missing)
	case h.filtered() || h.container() != "":
		return Cause{Text: what + "; " + h.filter() + " refuses it", Hints: h.outer(options)}
	case h.seLinux():
		return Cause{
			Text:  what + "; SELinux is enforcing and may refuse it",
			Hints: []string{"ausearch -m avc -ts recent | audit2allow -M sandglass && semodule -i sandglass.pp   # allows what was refused last; read sandglass.te first"},
		}
	}
	return Cause{Text: what + "; AppArmor, SELinux, an LXC profile, an outer container's seccomp filter or a chroot withholds it", Hints: h.outer(options)}
}

// filter is what is known of the one who refuses.
func (h host) filter() string {
	who := "an outer container's profile (seccomp, AppArmor or SELinux)"
	if c := h.container(); c != "" {
		who = "the profile of this " + c + " container (seccomp, AppArmor or SELinux)"
	} else if h.filtered() {
		who = "the seccomp filter that this process is under"
	}
	return who
}

// missing are the capabilities of the list that a root caller lacks. An ordinary
// user needs none on the host.
func (h host) missing(needs []string) []string {
	if h.uid != 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(needs), h.has)
}

// MissingCaps are those of needs (without CAP_) that this root process lacks.
func MissingCaps(needs ...string) []string { return here().missing(needs) }

// WithoutCap is why a root caller's run needs a capability that it lacks, empty
// where it has it.
func WithoutCap(name, why string) Cause {
	h := here()
	if len(h.missing([]string{name})) == 0 {
		return Cause{}
	}
	c := h.withoutCaps("", []string{name})
	c.Text += ", which it needs " + why
	return c
}

func (h host) withoutCaps(before string, missing []string) Cause {
	return Cause{
		Text:  before + "root lacks CAP_" + strings.Join(missing, ", CAP_"),
		Hints: append(h.addCaps(missing), "grep Cap /proc/self/status   # what root has: CapEff, and at most CapBnd"),
	}
}
