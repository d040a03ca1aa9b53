// Package doctor holds what is known of hosts that cannot give a control: the
// cause in words and what to paste. run's refusals and the doctor command use
// the same texts.
package doctor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Cause is why this host refuses something. Text is one line, lower case.
type Cause struct {
	Text  string
	Hints []string
}

// CloneFailed explains why new namespaces could not be made.
func CloneFailed(errno syscall.Errno) Cause {
	switch {
	case errno == syscall.ENOSPC || sysctl("user/max_user_namespaces") == "0":
		return Cause{
			Text:  "user namespaces cannot be made: user.max_user_namespaces is used up or 0",
			Hints: []string{"sysctl -w user.max_user_namespaces=15000"},
		}
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return Cause{
			Text:  "user namespaces are off for ordinary users: kernel.unprivileged_userns_clone is 0",
			Hints: []string{"sysctl -w kernel.unprivileged_userns_clone=1"},
		}
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return apparmor()
	case errno == syscall.ENOSYS:
		return Cause{Text: "this kernel lacks a system call that sandglass needs: Linux 5.12 or newer is required"}
	case errno == syscall.EPERM || errno == syscall.EACCES:
		return Cause{
			Text: "user namespaces cannot be made or mapped: " + errno.Error() +
				"; an outer container's seccomp filter or a missing capability (CAP_SYS_ADMIN, CAP_SETUID, CAP_SETFCAP) refuses it",
			Hints: []string{
				"docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined IMAGE   # the outer container, with its other flags",
				"capsh --print   # what the bounding set lacks",
			},
		}
	case errno == syscall.ETOOMANYREFS:
		return Cause{
			Text:  "too many descriptors of this user are on their way through sockets, more than the hard limit on open files",
			Hints: []string{"ulimit -Hn   # too low; or a program of this user that sends descriptors nobody takes"},
		}
	case errno == syscall.EINVAL:
		return Cause{Text: "user namespaces cannot be made here: inside a chroot, or more than 32 levels deep"}
	}
	return Cause{Text: fmt.Sprintf("cannot start the sandbox's init: %v", errno)}
}

func apparmor() Cause {
	return Cause{
		Text: "AppArmor keeps programs in unprivileged user namespaces from mounting (kernel.apparmor_restrict_unprivileged_userns is 1)",
		Hints: []string{
			"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
		},
	}
}

// StepFailed explains a step of init's set-up. An empty Text: nothing is known.
func StepFailed(step string, errno syscall.Errno) Cause {
	denied := errno == syscall.EPERM || errno == syscall.EACCES
	switch {
	case errno == syscall.ENOSYS:
		return Cause{Text: "this kernel lacks the system call: Linux 5.12 or newer is required"}
	case denied && sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return apparmor()
	case step == "pivot_root" && errno == syscall.EINVAL:
		return Cause{
			Text:  "the host's root is the initial ramfs, which pivot_root(2) refuses",
			Hints: []string{"exec switch_root /newroot /sbin/init   # in the host's initramfs"},
		}
	case step == "mount /proc" && denied:
		return Cause{
			Text:  "an outer container masks parts of /proc, so a new one may not be mounted",
			Hints: []string{"docker run --security-opt systempaths=unconfined IMAGE   # the outer container, with its other flags", "--proc none   # if the program needs no /proc"},
		}
	case denied && (strings.HasPrefix(step, "mount") || strings.HasPrefix(step, "make mounts") || step == "pivot_root" || step == "hostname"):
		return Cause{
			Text: "inside a user namespace this needs CAP_SYS_ADMIN, which AppArmor, an LXC profile or an outer container's seccomp filter withholds",
			Hints: []string{
				"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # Ubuntu 23.10 and newer",
				"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined IMAGE   # the outer container, with its other flags",
			},
		}
	}
	return Cause{}
}

// HostMountFailed explains a mount call that a root supervisor makes in the
// host's own namespaces, before there is a sandbox.
func HostMountFailed(errno syscall.Errno) Cause {
	switch errno {
	case syscall.ENOSYS:
		return Cause{
			Text:  "this kernel lacks the system call: Linux 5.12 or newer is required",
			Hints: []string{"uname -r"},
		}
	case syscall.EPERM, syscall.EACCES:
		return Cause{
			Text: "this needs CAP_SYS_ADMIN, which AppArmor, an LXC profile, or an outer container's capabilities or seccomp filter withholds",
			Hints: []string{
				"docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined IMAGE   # the outer container, with its other flags",
				"capsh --print   # what the bounding set lacks",
			},
		}
	}
	return Cause{}
}

func sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
