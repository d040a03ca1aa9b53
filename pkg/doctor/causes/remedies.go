package causes

import (
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
)

// price is what it costs to open user namespaces to everybody.
const price = "its price: every user's programs reach more of the kernel"

// need is what an outer container must give for something.
type need int

const (
	toRun need = iota // all that a default run needs
	toMount
	toMountAsRoot
	unmaskProc
	writableCgroups
)

// outer are the options with which a container is started so that sandglass runs
// in it: those of the kind of container that this is, of all where it is unknown.
// None is --privileged, which also opens the host's devices.
func (h host) outer(n need) []string {
	known := map[string][]string{"docker": docker[n], "podman": podman[n], "kubernetes": kubernetes[n], "lxc": lxc[n]}
	if list, ok := known[h.container()]; ok {
		return slices.Clone(list)
	}
	list := []string{docker[n][0], podman[n][0], kubernetes[n][0]}
	if h.systemd() && (n == toRun || n == unmaskProc) {
		list = append(list, "systemctl edit NAME.service   # if it is a service's filter: RestrictNamespaces=no, SystemCallFilter=, RestrictSUIDSGID=no (so no DynamicUser=) and ProtectKernelTunables=no under [Service]")
	}
	return list
}

const others = " IMAGE   # the outer container, with its other flags"

// The options of each kind. seccomp=unconfined and its like lift the outer
// profile for everything in that container, --cap-add one capability.
var docker = map[need][]string{
	toRun: {"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined" +
		" --security-opt writable-cgroups=true --cgroupns private" + others},
	toMount:       {"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined" + others},
	toMountAsRoot: {"docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined" + others},
	unmaskProc:    {"docker run --security-opt systempaths=unconfined" + others},
	writableCgroups: {
		"docker run --security-opt writable-cgroups=true --cgroupns private IMAGE   # the outer container, with its other flags: Docker 28 on cgroup v2",
		"docker run --privileged --cgroupns private IMAGE   # older ones; its price: the container's root is nearly the host's",
	},
}

var podman = map[need][]string{
	toRun:           {"podman run --security-opt seccomp=unconfined --security-opt label=disable --security-opt unmask=ALL" + others},
	toMount:         {"podman run --security-opt seccomp=unconfined --security-opt label=disable" + others},
	toMountAsRoot:   {"podman run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt label=disable" + others},
	unmaskProc:      {"podman run --security-opt unmask=ALL" + others},
	writableCgroups: {"podman run --security-opt unmask=/sys/fs/cgroup --cgroupns private" + others},
}

const podNote = "   # of the pod, with its other fields"

var kubernetes = map[need][]string{
	toRun: {"spec: {hostUsers: false, containers: [{securityContext: {procMount: Unmasked, seccompProfile: {type: Unconfined}," +
		" appArmorProfile: {type: Unconfined}}}]}" + podNote},
	toMount:       {"securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}" + podNote},
	toMountAsRoot: {"securityContext: {capabilities: {add: [SYS_ADMIN]}, seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}" + podNote},
	unmaskProc:    {"spec: {hostUsers: false, containers: [{securityContext: {procMount: Unmasked}}]}" + podNote},
	writableCgroups: {
		"cgroup_writable = true   # containerd 2.1 and newer: in the runtime's section of config.toml, for a RuntimeClass of its own",
		`io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw: "true"   # CRI-O: an annotation of the pod`,
	},
}

const nesting = "lxc config set NAME security.nesting true && lxc restart NAME   # LXD and Incus (there the command is incus)"

var lxc = map[need][]string{
	toRun:           {nesting, "echo 'lxc.include = /usr/share/lxc/config/nesting.conf' >>/var/lib/lxc/NAME/config   # plain LXC", "pct set VMID --features nesting=1   # Proxmox"},
	toMount:         {nesting},
	toMountAsRoot:   {nesting},
	unmaskProc:      {nesting},
	writableCgroups: {nesting},
}

// Together are the hints for two things that are lacking at once. Where an outer
// container must be started differently for both, that is one command and not two.
func Together(first, second []string) []string { return here().together(first, second) }

func (h host) together(first, second []string) []string {
	if slices.ContainsFunc(first, isOuter) && slices.ContainsFunc(second, isOuter) {
		list := h.outer(toRun)
		for _, hint := range append(slices.Clone(first), second...) {
			if !isOuter(hint) {
				list = append(list, hint)
			}
		}
		return list
	}
	return append(slices.Clone(first), second...)
}

// isOuter: a hint that says how to start the outer container.
func isOuter(hint string) bool {
	for _, table := range []map[need][]string{docker, podman, kubernetes, lxc} {
		for _, list := range table {
			if slices.Contains(list, hint) {
				return true
			}
		}
	}
	return false
}

// addCaps asks for capabilities alone.
func (h host) addCaps(missing []string) []string {
	flags := ""
	for _, c := range missing {
		flags += " --cap-add " + c
	}
	switch h.container() {
	case "podman":
		return []string{"podman run" + flags + others}
	case "kubernetes":
		return []string{"securityContext: {capabilities: {add: [" + strings.Join(missing, ", ") + "]}}" + podNote}
	case "lxc":
		return []string{"lxc config get NAME raw.lxc   # without lxc.cap.drop of " + strings.ToLower(strings.Join(missing, " "))}
	}
	return []string{"docker run" + flags + others}
}

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
	scope    = "systemd-run --user --scope -p Delegate=yes sandglass run script.py"
	bootV2   = "systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all"
	delegate = `mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\nDelegate=cpu cpuset io memory pids\n' > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload`
	asRoot   = "sudo sandglass run script.py"
)

// OwnGroup are the ways to a control group of one's own on cgroup v2.
func OwnGroup() []string { return here().ownGroup() }

func (h host) ownGroup() []string {
	uid := strconv.Itoa(h.uid)
	switch {
	case h.uid == 0:
		return []string{scope}
	case h.actions():
		return []string{asRoot, scope}
	case h.systemd() && !h.exists("/run/user/"+uid+"/bus"):
		return []string{
			scope,
			"loginctl enable-linger " + uid + " && export XDG_RUNTIME_DIR=/run/user/" + uid + "   # before it: this user has no session (the first command is an administrator's)",
		}
	case !h.systemd() && h.container() == "":
		return []string{scope, asRoot + "   # where there is no systemd"}
	}
	return []string{scope}
}

// Delegate has systemd pass all controllers on to its users.
func Delegate() []string {
	// A user's manager looks once, when it starts, at what it may pass on.
	return []string{delegate, "systemctl restart user@" + strconv.Itoa(here().uid) + ".service   # then: ends this user's services; a new login does as well"}
}

// CgroupV1Denied are the ways on where an ordinary user meets cgroup v1, which
// systemd delegates to nobody.
func CgroupV1Denied() []string {
	return append([]string{asRoot}, here().toV2("for cgroup v2, which users can be given")...)
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

// ReadOnlyCgroup are the ways to a cgroup mount that can be written.
func ReadOnlyCgroup(mount string) []string {
	return append(slices.Clone(here().outer(writableCgroups)), "mount -o remount,rw "+refusal.Shell(mount))
}

// NoCgroup are the ways to a cgroup mount.
func NoCgroup(mount string) []string {
	return []string{"mount -t cgroup2 none " + refusal.Shell(mount)}
}
