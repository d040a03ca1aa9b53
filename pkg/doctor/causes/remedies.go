package causes

import (
	"strconv"
	"strings"

	"sandglass/internal/refusal"
)

// price is what it costs to open user namespaces to everybody.
const price = "its price: every user's programs reach more of the kernel"

// appArmor is Ubuntu's restriction, since 23.10.
func (h host) appArmor() Cause {
	hints := []string{h.profile(), "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # instead; " + price}
	if h.actions() {
		hints = []string{"- run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # a step of the workflow, before this one"}
	}
	return Cause{
		Text:  "AppArmor keeps programs in unprivileged user namespaces from mounting (kernel.apparmor_restrict_unprivileged_userns is 1)",
		Hints: hints,
	}
}

// confined is a profile that somebody has written for programs like this one.
func (h host) confined(what string) Cause {
	return Cause{
		Text:  what + "AppArmor's profile " + h.confinedBy() + ", which this process is under, may refuse it",
		Hints: []string{h.profile(), "dmesg | grep 'apparmor=\"DENIED\"' | tail   # what was refused, and by which profile"},
	}
}

// profile is a command that loads an AppArmor profile for this binary. It allows
// no more than the binary had before Ubuntu's restriction.
func (h host) profile() string {
	text := `abi <abi/4.0>,\ninclude <tunables/global>\nprofile sandglass "` + h.attachment() + `" flags=(unconfined) {\n  userns,\n}\n`
	return "printf " + single(text) + " | sudo tee /etc/apparmor.d/sandglass && sudo apparmor_parser -r /etc/apparmor.d/sandglass   # for this binary alone"
}

// attachment is the binary's path as a profile names it: the characters with a
// meaning in its globs are literal, and printf(1) leaves one of each two
// backslashes and of each two percent signs.
func (h host) attachment() string {
	var b strings.Builder
	for _, r := range h.exe {
		switch {
		case strings.ContainsRune(`*?[]{}"^`, r):
			b.WriteString(`\\` + string(r))
		case r == '\\':
			b.WriteString(`\\\\`)
		case r == '%':
			b.WriteString("%%")
		case !strconv.IsPrint(r):
			return "/PATH/TO/sandglass"
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// single makes s one word of a shell, backslashes and all.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Texts of what systemd is asked for, for control groups.
const (
	scope    = "systemd-run --user --scope -p Delegate=yes " + refusal.Example
	bootV2   = "systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all"
	delegate = `mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\nDelegate=cpu cpuset io memory pids\n' > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload`
	asRoot   = "sudo " + refusal.Example
)

// AsNobody starts a run of root's as a user who owns nothing, where root may change
// to one and the user namespace has one.
func AsNobody() []string { return here().asNobody() }

func (h host) asNobody() []string {
	if len(h.missing([]string{"SETUID", "SETGID"})) > 0 || h.inUserNamespace() && !h.maps(65534) {
		return nil
	}
	return []string{"setpriv --reuid 65534 --regid 65534 --clear-groups " + refusal.Example + "   # as a user who owns nothing"}
}

// ReadOnlyLocks are the ways to a place for the locks of root's host ids, where
// neither /proc/sys nor /run can be written to.
func ReadOnlyLocks() []string { return here().readOnlyLocks() }

func (h host) readOnlyLocks() []string {
	if h.contained() { // a run needs it for /proc as well
		return h.outer(unmaskProc)
	}
	return []string{"mount -t tmpfs -o mode=755 tmpfs /run   # as root; or a writable /proc/sys"}
}

// OwnGroup are the ways to a control group of one's own on cgroup v2.
func OwnGroup() []string { return here().ownGroup() }

func (h host) ownGroup() []string {
	uid := strconv.Itoa(h.uid)
	switch {
	case h.contained() && !h.systemd(): // nobody there could be asked for a scope
		return h.outer(ownCgroup)
	case h.uid == 0:
		return []string{scope}
	case h.actions():
		return []string{asRoot, scope}
	case h.systemd() && !h.exists("/run/user/"+uid+"/bus"):
		return []string{
			scope,
			"loginctl enable-linger " + uid + " && export XDG_RUNTIME_DIR=/run/user/" + uid + "   # before it: this user has no session (the first command is an administrator's)",
		}
	case !h.systemd():
		return []string{scope, asRoot + "   # where there is no systemd"}
	}
	return []string{scope}
}

// OtherGroup are the ways to another group than one's own, in which there are
// processes of others. In a container that is its top, which its own processes
// are in: only they can leave it.
func OtherGroup() []string { return here().otherGroup() }

func (h host) otherGroup() []string {
	if h.contained() && !h.systemd() {
		return nil
	}
	return h.ownGroup()
}

// Delegate has systemd pass all controllers on to its users.
func Delegate() []string {
	// A user's manager looks once, when it starts, at what it may pass on.
	return []string{delegate, "systemctl restart user@" + strconv.Itoa(here().uid) + ".service   # then: ends this user's services; a new login does as well"}
}

// CgroupV1Denied are the ways on where an ordinary user meets cgroup v1, which
// systemd delegates to nobody.
func CgroupV1Denied() []string { return here().cgroupV1Denied() }

func (h host) cgroupV1Denied() []string {
	const why = "for cgroup v2, which users can be given"
	if h.contained() && h.inUserNamespace() {
		first := "runc run ID"
		switch h.container() {
		case "docker", "podman":
			first, _, _ = strings.Cut(h.outer(writableCgroups)[0], "   # ")
		case "":
		default:
			return h.toV2(why + ": the host")
		}
		return append([]string{"sudo " + first + "   # the outer container, with its other flags"}, h.toV2(why+": the host")...)
	}
	return append([]string{asRoot}, h.toV2(why)...)
}

// ToV2 boots a host with cgroup v2.
func ToV2() []string { return here().toV2("") }

func (h host) toV2(why string) []string {
	line := "boot with " + bootV2
	if h.wsl() == 2 {
		return []string{`kernelCommandLine = cgroup_no_v1=all   # under [wsl2] of %UserProfile%\.wslconfig, then wsl --shutdown: cgroup v2 alone`}
	}
	if why != "" {
		line += " " + why
	}
	return []string{line}
}

// ReadOnlyCgroup are the ways to a cgroup mount that can be written. A container's
// root can change its own only where it is the host's and may mount.
func ReadOnlyCgroup(mount string) []string { return here().readOnlyCgroup(mount) }

func (h host) readOnlyCgroup(mount string) []string {
	list := h.outer(writableCgroups)
	if h.contained() && (h.inUserNamespace() || !h.has("SYS_ADMIN")) {
		return list
	}
	return append(list, "mount -o remount,rw "+refusal.Shell(mount))
}

// NoCgroup are the ways to a cgroup mount.
func NoCgroup(mount string) []string {
	return []string{"mount -t cgroup2 none " + refusal.Shell(mount)}
}
