package causes

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// host is where causes are looked for. Tests give a directory as its root.
type host struct {
	root   string // "" is the real one
	uid    int
	exe    string // this binary
	getenv func(string) string
}

// here is this host. The binary's path is asked for once: it is in hints alone.
var here = sync.OnceValue(func() host {
	exe, err := os.Executable()
	if err != nil {
		exe = "/usr/local/bin/sandglass"
	}
	return host{uid: os.Geteuid(), exe: exe, getenv: os.Getenv}
})

func (h host) read(path string) string {
	b, err := os.ReadFile(h.root + path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (h host) exists(path string) bool {
	_, err := os.Lstat(h.root + path)
	return err == nil
}

func (h host) sysctl(name string) string { return h.read("/proc/sys/" + name) }

// status is one field of this process's status.
func (h host) status(field string) string {
	for line := range strings.Lines(h.read("/proc/self/status")) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// filtered: a seccomp filter is on this process, of an outer container, say.
func (h host) filtered() bool { return h.status("Seccomp") == "2" }

// capBits are the capabilities that are asked for.
var capBits = [...]string{0: "CHOWN", 1: "DAC_OVERRIDE", 5: "KILL", 6: "SETGID", 7: "SETUID", 8: "SETPCAP", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 31: "SETFCAP"}

// has says whether this process has a capability in the namespace that it is in.
func (h host) has(name string) bool {
	set, err := strconv.ParseUint(h.status("CapEff"), 16, 64)
	bit := slices.Index(capBits[:], name)
	return err == nil && name != "" && bit >= 0 && set&(1<<bit) != 0
}

func (h host) appArmorRestricts() bool {
	return h.sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && !h.has("SYS_ADMIN")
}

// confinedBy is the AppArmor profile that this process is under on a host of its
// own: a container has one of its manager's.
func (h host) confinedBy() string {
	if h.container() != "" || h.read("/sys/module/apparmor/parameters/enabled") != "Y" {
		return ""
	}
	name, enforced := strings.CutSuffix(h.read("/proc/self/attr/current"), " (enforce)")
	if !enforced || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return ""
	}
	return name
}

func (h host) seLinux() bool { return h.read("/sys/fs/selinux/enforce") == "1" }

// chrooted: no mount is at "/", so the root is a directory of one (current_chrooted
// in fs/fs_struct.c is why clone(2) fails there).
func (h host) chrooted() bool {
	text := h.read("/proc/self/mountinfo")
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" {
			return false
		}
	}
	return text != ""
}

// container is the kind of container that this process is in: docker, podman,
// kubernetes, lxc, another name that its manager has given, or "".
func (h host) container() string {
	switch {
	case h.getenv("KUBERNETES_SERVICE_HOST") != "" || h.exists("/var/run/secrets/kubernetes.io"):
		return "kubernetes"
	case h.exists("/run/.containerenv"):
		return "podman"
	case h.exists("/.dockerenv"):
		return "docker"
	case h.exists("/dev/lxd/sock") || h.exists("/dev/.lxc"):
		return "lxc"
	}
	name := h.getenv("container")
	if name == "" {
		name = h.read("/run/systemd/container")
	}
	switch {
	case strings.HasPrefix(name, "lxc"):
		return "lxc"
	case len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "":
		return "" // what comes from outside is not printed
	}
	return name
}

// firstPID is the PID namespace that is not in another: its number is the same on
// every kernel (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const firstPID = "pid:[4026531836]"

// unmarked: this is a container that nothing names, as runc's and crun's own are.
func (h host) unmarked() bool {
	ns, err := os.Readlink(h.root + "/proc/self/ns/pid")
	return err == nil && ns != firstPID && h.container() == ""
}

// contained: in a container, with or without a name.
func (h host) contained() bool { return h.container() != "" || h.unmarked() }

// InUserNamespace: root here is not the host's root, and owns of the host what
// somebody else's id owns.
func InUserNamespace() bool { return here().inUserNamespace() }

func (h host) inUserNamespace() bool {
	f := strings.Fields(h.read("/proc/self/uid_map"))
	return len(f) > 0 && !slices.Equal(f, []string{"0", "0", "4294967295"})
}

// maps says whether this user namespace has an id.
func (h host) maps(id uint64) bool {
	for line := range strings.Lines(h.read("/proc/self/uid_map")) {
		var inside, outside, count uint64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && id >= inside && id-inside < count {
			return true
		}
	}
	return false
}

// wsl is the version of the Windows Subsystem for Linux, 0 for none.
func (h host) wsl() int {
	release := h.sysctl("kernel/osrelease")
	switch {
	case strings.Contains(release, "WSL2") || strings.Contains(release, "microsoft-standard"):
		return 2
	case strings.Contains(release, "Microsoft"):
		return 1
	}
	return 0
}

func (h host) actions() bool { return h.getenv("GITHUB_ACTIONS") == "true" }

// systemd is PID 1.
func (h host) systemd() bool { return h.exists("/run/systemd/system") }

// Kind is what this host is, for the first line of doctor: the container that
// it is, and what else the remedies depend on.
func Kind() []string { return here().kind() }

func (h host) kind() []string {
	var list []string
	if c := h.container(); c != "" {
		list = append(list, c+" container")
	}
	if h.unmarked() {
		list = append(list, "in a PID namespace of its own")
	}
	if v := h.wsl(); v > 0 {
		list = append(list, "WSL"+strconv.Itoa(v))
	}
	if h.actions() {
		list = append(list, "GitHub Actions")
	}
	if h.filtered() {
		list = append(list, "under a seccomp filter")
	}
	if h.seLinux() {
		list = append(list, "SELinux enforcing")
	}
	if h.appArmorRestricts() {
		list = append(list, "AppArmor restricts user namespaces")
	}
	return list
}
