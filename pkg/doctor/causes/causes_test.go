package causes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fake is a host made of files; status are lines of /proc/self/status.
func fake(t *testing.T, uid int, files map[string]string) host {
	t.Helper()
	h := host{root: t.TempDir(), uid: uid, exe: "/opt/my tools/sandglass", getenv: func(string) string { return "" }}
	if _, ok := files["/proc/self/mountinfo"]; !ok {
		files["/proc/self/mountinfo"] = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(h.root+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, "/proc/self/ns/") && text != "" {
			if err := os.Symlink(text, h.root+path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(h.root+path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

const (
	allCaps  = "CapEff:\t000001ffffffffff\n"
	noCaps   = "CapEff:\t0000000000000000\n"
	filterOn = "Seccomp:\t2\n"
)

func TestCloneFailed(t *testing.T) {
	const what = "user namespaces cannot be made or mapped: clone: operation not permitted"
	const lacks = "user namespaces cannot be made or mapped: map ids: operation not permitted; root lacks CAP_SETFCAP"
	for name, c := range map[string]struct {
		uid        int
		files      map[string]string
		step       string
		errno      syscall.Errno
		text, hint string
	}{
		"none allowed": {1000, map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, "clone", syscall.ENOSPC,
			"user namespaces cannot be made: user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=15000   # " + price},
		"no network": {0, map[string]string{"/proc/sys/user/max_user_namespaces": "5\n", "/proc/sys/user/max_net_namespaces": "0\n"}, "clone", syscall.ENOSPC,
			"network namespaces cannot be made: user.max_net_namespaces is 0", "sysctl -w user.max_net_namespaces=15000   # " + price},
		"used up": {1000, map[string]string{"/proc/sys/user/max_user_namespaces": "5\n"}, "clone", syscall.ENOSPC,
			"user namespaces cannot be made: a limit of user.max_*_namespaces is used up, here or in a namespace above, or 32 are nested", "sysctl user   # max_*_namespaces, here and on the outer host"},
		"Debian's switch": {1000, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n", "/proc/self/status": noCaps}, "clone", syscall.EPERM,
			"user namespaces are off for ordinary users: kernel.unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1   # " + price},
		"Debian's switch and root": {0, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n", "/proc/self/status": allCaps + filterOn}, "clone", syscall.EPERM,
			what + "; the seccomp filter that this process is under refuses it", docker[toRun][0]},
		"AppArmor": {1000, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "/proc/self/status": noCaps}, "clone", syscall.EACCES,
			"AppArmor keeps programs in unprivileged user namespaces from mounting (kernel.apparmor_restrict_unprivileged_userns is 1)",
			`printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile sandglass "/opt/my tools/sandglass" flags=(unconfined) {\n  userns,\n}\n' | sudo tee /etc/apparmor.d/sandglass && sudo apparmor_parser -r /etc/apparmor.d/sandglass   # for this binary alone`},
		"a profile of AppArmor": {1000, map[string]string{"/sys/module/apparmor/parameters/enabled": "Y\n", "/proc/self/attr/current": "untrusted (enforce)\n", "/proc/self/status": noCaps}, "clone", syscall.EACCES,
			"user namespaces cannot be made or mapped: clone: permission denied; AppArmor's profile untrusted, which this process is under, may refuse it",
			`printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile sandglass "/opt/my tools/sandglass" flags=(unconfined) {\n  userns,\n}\n' | sudo tee /etc/apparmor.d/sandglass && sudo apparmor_parser -r /etc/apparmor.d/sandglass   # for this binary alone`},
		"a profile of AppArmor that only tells": {1000, map[string]string{"/sys/module/apparmor/parameters/enabled": "Y\n", "/proc/self/attr/current": "untrusted (complain)\n", "/proc/self/status": noCaps}, "clone", syscall.EPERM,
			what + "; AppArmor, SELinux, an LXC profile, an outer container's seccomp filter or a chroot withholds it", docker[toRun][0]},
		"chroot": {0, map[string]string{"/proc/self/mountinfo": "30 1 0:5 / /proc rw - proc proc rw\n", "/proc/self/status": allCaps}, "clone", syscall.EPERM,
			what + "; this process is in a chroot, where the kernel allows no user namespace", "unshare --mount sh -c 'mount --rbind DIR DIR && cd DIR && pivot_root . . && umount -l . && exec sandglass run script.py'   # from outside, as root, in place of chroot DIR"},
		"no capability": {0, map[string]string{"/proc/self/status": noCaps}, "map ids", syscall.EPERM,
			lacks, "grep Cap /proc/self/status   # what root has: CapEff, and at most CapBnd"},
		"no capability in a service": {0, map[string]string{"/proc/self/status": noCaps, "/run/systemd/system/x": "", "/proc/self/ns/pid": firstPID}, "map ids", syscall.EPERM,
			lacks, "systemctl edit NAME.service   # if it is a service's: CAP_SETFCAP in CapabilityBoundingSet= under [Service]"},
		"no capability in Docker": {0, map[string]string{"/proc/self/status": noCaps, "/.dockerenv": "", "/proc/self/ns/pid": "pid:[4026532201]"}, "map ids", syscall.EPERM,
			lacks, "docker run --cap-add SETFCAP" + others},
		"no capability in a container of runc": {0, map[string]string{"/proc/self/status": noCaps, "/proc/self/ns/pid": "pid:[4026532201]"}, "map ids", syscall.EPERM,
			lacks, `jq '.process.capabilities[] += ["CAP_SETFCAP"]'` + bundle},
		"docker": {0, map[string]string{"/.dockerenv": "", "/proc/self/status": allCaps}, "clone", syscall.EPERM,
			what + "; the profile of this docker container (seccomp, AppArmor or SELinux) refuses it", docker[toRun][0]},
		"podman": {1000, map[string]string{"/run/.containerenv": "", "/proc/self/status": noCaps + filterOn}, "clone", syscall.EPERM,
			what + "; the profile of this podman container (seccomp, AppArmor or SELinux) refuses it", podman[toRun][0]},
		"kubernetes": {0, map[string]string{"/var/run/secrets/kubernetes.io": "", "/.dockerenv": "", "/proc/self/status": allCaps}, "clone", syscall.EPERM,
			what + "; the profile of this kubernetes container (seccomp, AppArmor or SELinux) refuses it", kubernetes[toRun][0]},
		"LXC": {0, map[string]string{"/run/systemd/container": "lxc\n", "/proc/self/status": allCaps}, "clone", syscall.EPERM,
			what + "; the profile of this lxc container (seccomp, AppArmor or SELinux) refuses it", lxc[toRun][0]},
		"SELinux": {1000, map[string]string{"/sys/fs/selinux/enforce": "1", "/proc/self/status": noCaps}, "clone", syscall.EACCES,
			"user namespaces cannot be made or mapped: clone: permission denied; SELinux is enforcing and may refuse it",
			"ausearch -m avc -ts recent | audit2allow -M sandglass && semodule -i sandglass.pp   # allows what was refused last; read sandglass.te first"},
		"unknown": {1000, map[string]string{"/proc/self/status": noCaps}, "clone", syscall.EPERM,
			what + "; AppArmor, SELinux, an LXC profile, an outer container's seccomp filter or a chroot withholds it", docker[toRun][0]},
		"old kernel": {1000, map[string]string{}, "close descriptors", syscall.ENOSYS,
			"close descriptors: this kernel lacks a system call that sandglass needs: Linux 5.12 or newer is required", "uname -r"},
		"Linux 5.10": {1000, map[string]string{}, "seal descriptors", syscall.EINVAL,
			"seal descriptors: this kernel does not take close_range(2)'s flags: Linux 5.12 or newer is required", "uname -r"},
		"not built in": {1000, map[string]string{"/proc/self/ns/user": "", "/proc/self/ns/mnt": ""}, "clone", syscall.EINVAL,
			"PID namespaces are not built into this kernel", "zgrep _NS= /proc/config.gz   # a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and CONFIG_UTS_NS is needed"},
		"WSL1": {1000, map[string]string{"/proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n"}, "clone", syscall.EINVAL,
			"version 1 of the Windows Subsystem for Linux is no Linux kernel and has no namespaces", "wsl --set-version DISTRIBUTION 2   # in Windows"},
		"processes": {1000, map[string]string{}, "clone", syscall.EAGAIN,
			"no process can be started: the user's limit on processes, or that of a control group, is used up", "ulimit -u   # the user's limit"},
		"no such file": {0, map[string]string{}, "execve", syscall.ENOENT, "cannot start the sandbox's init: execve: no such file or directory", ""},
	} {
		got := fake(t, c.uid, c.files).cloneFailed(c.step, c.errno)
		if got.Text != c.text {
			t.Errorf("%s:\n got %s\nwant %s", name, got.Text, c.text)
		}
		if c.hint == "" && len(got.Hints) > 0 || c.hint != "" && (len(got.Hints) == 0 || got.Hints[0] != c.hint) {
			t.Errorf("%s:\n got %q\nwant %q", name, got.Hints, c.hint)
		}
	}
}

func TestStepFailed(t *testing.T) {
	plain := map[string]string{"/proc/self/status": noCaps}
	for _, c := range []struct {
		step  string
		errno syscall.Errno
		files map[string]string
		text  string
	}{
		{"pivot_root", syscall.EINVAL, plain, "the host's root is the initial ramfs, which pivot_root(2) refuses"},
		{"pivot_root", syscall.EBUSY, plain, ""},
		{"mount /proc", syscall.EPERM, plain, "an outer container masks parts of /proc, so a new one may not be mounted"},
		{"mount /usr", syscall.EPERM, plain, "inside a user namespace this needs CAP_SYS_ADMIN; AppArmor, SELinux, an LXC profile, an outer container's seccomp filter or a chroot withholds it"},
		{"mount /usr", syscall.ENOSYS, map[string]string{"/proc/self/status": filterOn}, "this kernel lacks the system call, or the seccomp filter that this process is under hides it"},
		{"mount /usr", syscall.EACCES, map[string]string{"/proc/self/status": noCaps, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
			"AppArmor keeps programs in unprivileged user namespaces from mounting (kernel.apparmor_restrict_unprivileged_userns is 1)"},
		{"start program: seccomp", syscall.EINVAL, plain, "seccomp filters are not built into this kernel"},
		{"start program: seccomp", syscall.ENOMEM, plain, ""},
		{"packet inside", syscall.EPERM, plain, "a filter on addresses of the control group holds for the sandbox's own loopback too"},
		{"route of the listed hosts", syscall.EAFNOSUPPORT, plain, "a list of hosts needs a socket of netlink, which the seccomp filter that this process is under refuses"},
		{"loopback", syscall.EAFNOSUPPORT, plain, ""},
	} {
		if got := fake(t, 1000, c.files).stepFailed(c.step, c.errno); got.Text != c.text {
			t.Errorf("%s, %v:\n got %s\nwant %s", c.step, c.errno, got.Text, c.text)
		}
	}
}

// The command prints a profile that names this binary, whatever its path has.
func TestAppArmorProfile(t *testing.T) {
	for exe, attached := range map[string]string{
		"/usr/bin/sandglass":    "/usr/bin/sandglass",
		`/o'brien/100%/a*[b]\c`: `/o'brien/100%/a\*\[b\]\\c`,
		"/home/ü/x{y}^\"":       `/home/ü/x\{y\}\^\"`,
		"/a\nb":                 "/PATH/TO/sandglass",
	} {
		line := host{exe: exe}.profile()
		print, _, ok := strings.Cut(line, " | sudo tee ")
		if !ok || strings.Contains(line, "\n") {
			t.Fatalf("%q", line)
		}
		text, err := exec.Command("sh", "-c", print).Output()
		want := "abi <abi/4.0>,\ninclude <tunables/global>\nprofile sandglass \"" + attached + "\" flags=(unconfined) {\n  userns,\n}\n"
		if err != nil || string(text) != want {
			t.Errorf("%v\n got %s\nwant %s", err, text, want)
		}
	}
}

// The profile of the packages is the one that doctor prints, for their path.
func TestPackagedProfile(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/apparmor/sandglass")
	if err != nil {
		t.Fatal(err)
	}
	packaged := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	print, _, _ := strings.Cut(host{exe: "/usr/bin/sandglass"}.profile(), " | sudo tee ")
	printed, err := exec.Command("sh", "-c", print).Output()
	if got := strings.Join(packaged, ""); err != nil || got != string(printed) {
		t.Errorf("%v: packaging/apparmor/sandglass has\n%s\ndoctor prints\n%s", err, got, printed)
	}
}

// The remedies for control groups are those of the host that this is.
func TestOwnGroup(t *testing.T) {
	for name, c := range map[string]struct {
		uid   int
		files map[string]string
		env   map[string]string
		want  []string
	}{
		"a session":                     {1000, map[string]string{"/run/systemd/system/x": "", "/run/user/1000/bus": ""}, nil, []string{scope}},
		"no session":                    {1000, map[string]string{"/run/systemd/system/x": ""}, nil, []string{scope, "loginctl enable-linger 1000 && export XDG_RUNTIME_DIR=/run/user/1000   # before it: this user has no session (the first command is an administrator's)"}},
		"no systemd":                    {1000, map[string]string{}, nil, []string{scope, asRoot + "   # where there is no systemd"}},
		"a workflow":                    {1000, map[string]string{}, map[string]string{"GITHUB_ACTIONS": "true"}, []string{asRoot, scope}},
		"root":                          {0, map[string]string{}, nil, []string{scope}},
		"podman":                        {0, map[string]string{"/run/.containerenv": ""}, nil, podman[ownCgroup]},
		"runc":                          {0, map[string]string{"/proc/self/ns/pid": "pid:[4026532201]"}, nil, oci[ownCgroup]},
		"systemd inside of a container": {0, map[string]string{"/run/systemd/container": "lxc\n", "/run/systemd/system/x": ""}, nil, []string{scope}},
	} {
		h := fake(t, c.uid, c.files)
		h.getenv = func(key string) string { return c.env[key] }
		if got := h.ownGroup(); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
		want := c.want
		if name == "podman" || name == "runc" { // its top is to be left, not to be exchanged
			want = nil
		}
		if got := h.otherGroup(); !slices.Equal(got, want) {
			t.Errorf("%s, beside others:\n got %q\nwant %q", name, got, want)
		}
	}
}

// On cgroup v1 a user's container has no group of its own, whoever starts it.
func TestCgroupV1Denied(t *testing.T) {
	const users = "         0       1000          1\n"
	v2 := "boot with " + bootV2 + " for cgroup v2, which users can be given"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a user":            {map[string]string{"/proc/self/uid_map": "         0          0 4294967295\n"}, []string{asRoot, v2}},
		"a user namespace":  {map[string]string{"/proc/self/uid_map": users}, []string{asRoot, v2}},
		"a podman of root":  {map[string]string{"/run/.containerenv": "", "/proc/self/uid_map": "         0          0 4294967295\n"}, []string{asRoot, v2}},
		"a podman of users": {map[string]string{"/run/.containerenv": "", "/proc/self/uid_map": users}, []string{"sudo podman run --security-opt unmask=/sys/fs/cgroup --cgroupns private IMAGE   # the outer container, with its other flags", v2 + ": the host"}},
		"a runc of users":   {map[string]string{"/proc/self/ns/pid": "pid:[4026532201]", "/proc/self/uid_map": users}, []string{"sudo runc run ID   # the outer container, with its other flags", v2 + ": the host"}},
	} {
		if got := fake(t, 0, c.files).cgroupV1Denied(); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// Root becomes nobody where it may and where there is one.
func TestAsNobody(t *testing.T) {
	const one, many = "0 1000 1\n", "0 1000 1\n1 100000 65536\n"
	for name, c := range map[string]struct {
		caps, ids string
		can       bool
	}{
		"root": {allCaps, "0 0 4294967295\n", true}, "no capability": {noCaps, "0 0 4294967295\n", false},
		"one id": {allCaps, one, false}, "a range": {allCaps, many, true}, "a short range": {allCaps, "0 1000 1\n1 100000 65533\n", false},
	} {
		h := fake(t, 0, map[string]string{"/proc/self/status": c.caps, "/proc/self/uid_map": c.ids})
		if got := h.asNobody(); (len(got) == 1) != c.can {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestKind(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		env   map[string]string
		want  []string
	}{
		"plain":           {map[string]string{}, nil, nil},
		"runc":            {map[string]string{"/proc/self/ns/pid": "pid:[4026532201]"}, nil, []string{"in a PID namespace of its own"}},
		"WSL2":            {map[string]string{"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2"}, nil, []string{"WSL2"}},
		"WSL1":            {map[string]string{"/proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft"}, nil, []string{"WSL1"}},
		"Actions":         {map[string]string{"/proc/self/status": filterOn}, map[string]string{"GITHUB_ACTIONS": "true"}, []string{"GitHub Actions", "under a seccomp filter"}},
		"its own name":    {map[string]string{"/run/systemd/container": "systemd-nspawn"}, nil, []string{"systemd-nspawn container"}},
		"a name of evil":  {map[string]string{"/run/systemd/container": "x\x1b[31m"}, nil, nil},
		"in an image too": {map[string]string{"/sys/fs/selinux/enforce": "1", "/.dockerenv": ""}, nil, []string{"docker container", "SELinux enforcing"}},
	} {
		h := fake(t, 1000, c.files)
		h.getenv = func(key string) string { return c.env[key] }
		if got := h.kind(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Every need has a remedy for every kind of container, none of which is
// --privileged but where nothing less does.
func TestOuter(t *testing.T) {
	for kind, table := range map[string]remedies{"docker": docker, "podman": podman, "kubernetes": kubernetes, "lxc": lxc, "oci": oci} {
		for _, n := range []need{toRun, toMount, toMountAsRoot, unmaskProc, writableCgroups, ownCgroup} {
			if len(table[n]) == 0 {
				t.Errorf("%s has nothing for %d", kind, n)
			}
			for _, line := range table[n] {
				if strings.Contains(line, "--privileged") && (n != writableCgroups || !strings.Contains(line, "price")) || strings.ContainsAny(line, "\n") {
					t.Errorf("%s: %q", kind, line)
				}
			}
		}
	}
	// Where the kind is unknown each has one line, and appending to it harms none.
	h := fake(t, 1000, map[string]string{})
	got := h.outer(unmaskProc)
	if want := []string{docker[unmaskProc][0], podman[unmaskProc][0], kubernetes[unmaskProc][0]}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	in := fake(t, 0, map[string]string{"/.dockerenv": ""})
	_ = append(in.outer(writableCgroups)[:1], "x")
	if docker[writableCgroups][1] == "x" {
		t.Error("a caller has changed the table")
	}
}

// What an outer container must be started with is said once for two things.
func TestTogether(t *testing.T) {
	h := fake(t, 1000, map[string]string{"/.dockerenv": ""})
	mount, groups := append(h.outer(unmaskProc), "--proc none   # if"), append(h.outer(writableCgroups), "--allow-degraded memory")
	if got, want := h.together(mount, groups), []string{docker[toRun][0], "--proc none   # if", "--allow-degraded memory"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := h.together(mount, []string{"sudo x"}), append(slices.Clone(mount), "sudo x"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProc(t *testing.T) {
	h := fake(t, 1000, map[string]string{})
	for _, c := range []struct{ self, want string }{
		{"", "no /proc is mounted that shows this process, and without it no sandbox can be set up or looked at"},
		{"9", "/proc is of another PID namespace: process 7 is 9 there, and other processes have the numbers of the sandbox's"},
		{"7", ""},
	} {
		h.root = t.TempDir()
		if err := os.MkdirAll(h.root+"/proc", 0o755); err != nil {
			t.Fatal(err)
		}
		if c.self != "" {
			if err := os.Symlink(c.self, h.root+"/proc/self"); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if e := h.proc(7); e != nil {
			got = e.What
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.self, got, c.want)
		}
	}
}
