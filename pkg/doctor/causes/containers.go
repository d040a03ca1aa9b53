package causes

import (
	"slices"
	"strings"
)

// need is what an outer container must give for something.
type need int

const (
	toRun need = iota // all that a default run needs
	toMount
	toMountAsRoot
	unmaskProc
	writableCgroups
	ownCgroup // that the container's root may write to, where that is not the host's root
	needs
)

// remedies are by need. A map would be made at every start of the binary.
type remedies [needs][]string

// outer are the options with which a container is started so that sandglass runs
// in it: those of the kind of container that this is, of all where nothing tells.
// None is --privileged, which also opens the host's devices.
func (h host) outer(n need) []string {
	known := map[string][]string{"docker": docker[n], "podman": podman[n], "kubernetes": kubernetes[n], "lxc": lxc[n]}
	if h.unmarked() {
		return slices.Clone(oci[n])
	}
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
var docker = remedies{
	toRun: {"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined" +
		" --security-opt writable-cgroups=true --cgroupns private" + others},
	toMount:       {"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined" + others},
	toMountAsRoot: {"docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined" + others},
	unmaskProc:    {"docker run --security-opt systempaths=unconfined" + others},
	writableCgroups: {
		"docker run --security-opt writable-cgroups=true --cgroupns private IMAGE   # the outer container, with its other flags: Docker 28 on cgroup v2",
		"docker run --privileged --cgroupns private IMAGE   # older ones; its price: the container's root is nearly the host's",
	},
	ownCgroup: {"docker run --security-opt writable-cgroups=true --cgroupns private IMAGE   # the outer container, with its other flags: by root's Docker, or one that systemd runs for a user"},
}

var podman = remedies{
	toRun:           {"podman run --security-opt seccomp=unconfined --security-opt label=disable --security-opt unmask=ALL" + others},
	toMount:         {"podman run --security-opt seccomp=unconfined --security-opt label=disable" + others},
	toMountAsRoot:   {"podman run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt label=disable" + others},
	unmaskProc:      {"podman run --security-opt unmask=ALL" + others},
	writableCgroups: {"podman run --security-opt unmask=/sys/fs/cgroup --cgroupns private" + others},
	ownCgroup: {"podman --cgroup-manager systemd run --security-opt unmask=/sys/fs/cgroup --cgroupns private" + others +
		": by a user whose session is systemd's, or by root"},
}

const podNote = "   # of the pod, with its other fields"

var kubernetes = remedies{
	toRun: {"spec: {hostUsers: false, containers: [{securityContext: {procMount: Unmasked, seccompProfile: {type: Unconfined}," +
		" appArmorProfile: {type: Unconfined}}}]}" + podNote},
	toMount:       {"securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}" + podNote},
	toMountAsRoot: {"securityContext: {capabilities: {add: [SYS_ADMIN]}, seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}" + podNote},
	unmaskProc:    {"spec: {hostUsers: false, containers: [{securityContext: {procMount: Unmasked}}]}" + podNote},
	writableCgroups: {
		"cgroup_writable = true   # containerd 2.1 and newer: in the runtime's section of config.toml, for a RuntimeClass of its own",
		`io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw: "true"   # CRI-O: an annotation of the pod`,
	},
	ownCgroup: {"cgroup_writable = true   # containerd 2.1 and newer: in the runtime's section of config.toml, for a RuntimeClass of its own; and runAsUser: 0 of the pod"},
}

const nesting = "lxc config set NAME security.nesting true && lxc restart NAME   # LXD and Incus (there the command is incus)"

var lxc = remedies{
	toRun:           {nesting, "echo 'lxc.include = /usr/share/lxc/config/nesting.conf' >>/var/lib/lxc/NAME/config   # plain LXC", "pct set VMID --features nesting=1   # Proxmox"},
	toMount:         {nesting},
	toMountAsRoot:   {nesting},
	unmaskProc:      {nesting},
	writableCgroups: {nesting},
	ownCgroup:       {nesting},
}

// The same for a container of runc or crun alone, and of what is built on them and
// leaves no mark: its bundle's settings.
const bundle = " config.json >config.new && mv config.new config.json   # in the outer container's bundle, where runc or crun starts it"

const (
	noSeccomp   = ".linux.seccomp, .process.apparmorProfile"
	noMasks     = ".linux.maskedPaths, .linux.readonlyPaths"
	rwCgroup    = `(.mounts[] | select(.type == "cgroup").options) -= ["ro"]`
	adminAsWell = `.process.capabilities[] += ["CAP_SYS_ADMIN"]`
)

var oci = remedies{
	toRun:           {"jq 'del(" + noSeccomp + ", " + noMasks + ") | " + rwCgroup + "'" + bundle},
	toMount:         {"jq 'del(" + noSeccomp + ")'" + bundle},
	toMountAsRoot:   {"jq 'del(" + noSeccomp + ") | " + adminAsWell + "'" + bundle},
	unmaskProc:      {"jq 'del(" + noMasks + ")'" + bundle},
	writableCgroups: {"jq '" + rwCgroup + "'" + bundle},
	ownCgroup:       {"runc --systemd-cgroup run ID   # the outer container, by a user whose session is systemd's; or by root"},
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
	for _, table := range []remedies{docker, podman, kubernetes, lxc, oci} {
		for _, list := range table {
			if slices.Contains(list, hint) {
				return true
			}
		}
	}
	return false
}

// addCaps asks for capabilities alone, of whoever has taken them.
func (h host) addCaps(missing []string) []string {
	flags := ""
	for _, c := range missing {
		flags += " --cap-add " + c
	}
	switch h.container() {
	case "docker":
		return []string{"docker run" + flags + others}
	case "podman":
		return []string{"podman run" + flags + others}
	case "kubernetes":
		return []string{"securityContext: {capabilities: {add: [" + strings.Join(missing, ", ") + "]}}" + podNote}
	case "lxc":
		return []string{"lxc config get NAME raw.lxc   # without lxc.cap.drop of " + strings.ToLower(strings.Join(missing, " "))}
	}
	switch names := "CAP_" + strings.Join(missing, " CAP_"); {
	case h.unmarked():
		return []string{`jq '.process.capabilities[] += ["` + strings.ReplaceAll(names, " ", `", "`) + `"]'` + bundle}
	case h.systemd():
		return []string{"systemctl edit NAME.service   # if it is a service's: " + names + " in CapabilityBoundingSet= under [Service]"}
	}
	return nil
}
