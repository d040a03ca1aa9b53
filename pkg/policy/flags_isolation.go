package policy

import (
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
)

func fileFlags() []Flag {
	return []Flag{
		{Name: "volume", Short: "v", Arg: "SRC:DST[:ro|rw]", Group: groupFiles, Many: true, Set: setVolume,
			Help: "show a host path inside, read-only unless :rw (docker's default is rw)"},
		{Name: "mount", Arg: "type=bind,...", Group: groupFiles, Many: true, Set: setMount,
			Help: "the same as source=SRC,target=DST[,readonly=false]"},
		{Name: "out", Arg: "DIR", Group: groupFiles, Set: text(func(p *Parsed) *string { return &p.Spec.Out }),
			Help: "copy what the program leaves in /out to DIR when it is dead"},
		{Name: "force", Bool: true, Group: groupFiles, Set: boolean(func(p *Parsed) *bool { return &p.Spec.Force }),
			Help: "let --out overwrite files"},
		{Name: "out-files", Arg: "N", Default: "1000", Group: groupFiles,
			Set: count(func(l *Limits) *int64 { return &l.OutFiles }), Help: "entries that --out collects; more are an error"},
		{Name: "out-limit", Arg: "SIZE", Default: "256m", Group: groupFiles,
			Set: size(func(l *Limits) *int64 { return &l.OutBytes }), Help: "bytes that --out collects, of all files together"},
		{Name: "allow-mount", Arg: "PATH", Group: groupFiles, Many: true, Set: setAllowMount,
			Help: "allow this one source though it holds secrets or controls the host"},
	}
}

func isolationFlags() []Flag {
	return []Flag{
		{Name: "network", Arg: "none", Default: "none", Group: groupNetwork, Set: setNetwork,
			Help: "loopback alone; hosts are listed one by one with --allow-host"},
		{Name: "net", Arg: "none", Set: setNetwork},
		{Name: "seccomp", Arg: "NAME|FILE.bpf", Default: "default", Group: groupIsolation, Set: setSeccomp,
			Help: "system call profile: default, debug (tracing), minimal; or a filter made by profile compile"},
		{Name: "security-opt", Arg: "OPT", Group: groupIsolation, Many: true, Set: setSecurityOpt,
			Help: "no-new-privileges (always so) or seccomp=NAME|FILE.bpf"},
		{Name: "proc", Arg: "default|none", Default: "default", Group: groupIsolation,
			Set: text(func(p *Parsed) *string { return &p.Spec.Proc }), Help: "none: run without /proc"},
		{Name: "host-id", Arg: "auto|own|caller", Default: "auto", Group: groupIsolation, Set: setHostID,
			Help: "an id on the host for this sandbox alone, or the caller's; auto: its own where that can work"},
		{Name: "pty", Bool: true, Group: groupIsolation, Set: boolean(func(p *Parsed) *bool { return &p.Spec.Pty }),
			Help: "64 pseudo-terminals (/dev/ptmx) for the program; what the kernel does for them counts for no CPU limit"},
		{Name: "cgroup-parent", Arg: "PATH", Group: groupIsolation,
			Set: text(func(p *Parsed) *string { return &p.Spec.CgroupParent }), Help: "make the sandbox's cgroup below this one"},
		{Name: "allow-degraded", Arg: "LIST", Group: groupIsolation, Many: true, Set: setAllowDegraded,
			Help: "limits of memory,cpu,pids,io that weaker means may hold; the result says by what"},
	}
}

func resultFlags() []Flag {
	return []Flag{
		{Name: "json", Bool: true, Group: groupResult, Set: boolean(func(p *Parsed) *bool { return &p.JSON }),
			Help: "print the result with the captured output as one JSON object"},
		{Name: "result", Arg: "FILE", Group: groupResult, Set: setResult,
			Help: "write the result to FILE, as JSON"},
		{Name: "result-fd", Arg: "N", Group: groupResult, Set: setResultFD, Help: "write the result to descriptor N, 3 or above"},
		{Name: "explain-denials", Bool: true, Group: groupResult, Set: boolean(func(p *Parsed) *bool { return &p.Spec.ExplainDenials }),
			Help: "list what was refused in the result, and hint at what would allow it"},
		{Name: "quiet", Short: "q", Bool: true, Group: groupResult, Set: boolean(func(p *Parsed) *bool { return &p.Quiet }),
			Help: "print nothing of sandglass's own but errors"},
	}
}

// alwaysFlags are docker's, for what cannot be otherwise here.
func alwaysFlags() []Flag {
	return []Flag{
		{Name: "rm", Bool: true, Group: groupAlways, Set: always("a sandbox is thrown away after its run"),
			Help: "the sandbox is thrown away"},
		{Name: "read-only", Bool: true, Group: groupAlways, Set: always("the root is read-only"), Help: "the root is read-only"},
		{Name: "init", Bool: true, Group: groupAlways, Set: always("PID 1 is sandglass's own init"), Help: "an init reaps orphans"},
		{Name: "cap-drop", Arg: "ALL|CAP", Group: groupAlways, Many: true, Set: setCapDrop, Help: "every capability is dropped"},
		{Name: "tmpfs", Arg: "/tmp", Group: groupAlways, Many: true, Set: setTmpfs, Help: "/tmp is on the scratch, see --disk"},
		{Name: "hostname", Arg: "NAME", Group: groupAlways, Set: only("the host name is always sandglass", "sandglass"),
			Help: "the host name is sandglass"},
		{Name: "pid", Arg: "private", Group: groupAlways, Set: only("it shows the program every process of the host", "private"),
			Help: "so are ipc, uts, userns and cgroupns"},
		{Name: "ipc", Arg: "private", Set: only("it shares memory segments and queues with the host", "private", "none")},
		{Name: "uts", Arg: "private", Set: only("it shares the host's name", "private")},
		{Name: "userns", Arg: "private", Set: only("ids inside would be the host's own", "private")},
		{Name: "cgroupns", Arg: "private", Set: only("it shows the program the host's cgroup tree", "private")},
		{Name: "pull", Arg: "never", Set: only("no image is ever fetched", "never")},
		{Name: "restart", Arg: "no", Set: only("a sandbox runs once", "no")},
		{Name: "memory-swappiness", Arg: "0", Set: only("swap is always off", "0")},
	}
}

func setAllowMount(p *Parsed, v string) error {
	if v == "" {
		return refusal.Newf("the path is empty")
	}
	p.Spec.AllowMounts = append(p.Spec.AllowMounts, v)
	return nil
}

func setHostID(p *Parsed, v string) error {
	p.Spec.HostID = HostID(v)
	return nil
}

func setNetwork(_ *Parsed, v string) error {
	kind, _, _ := strings.Cut(v, ":")
	why, instead := "there are no user-defined networks here", "--allow-host example.org:443   # each host that the program needs"
	switch kind {
	case "none":
		if v == "none" {
			return nil
		}
	case "host":
		why = "it lets the program reach every service of this machine and its neighbours"
		instead = "--allow-host 127.0.0.1:5432   # one service of this machine, by its address"
	case "bridge", "default", "nat":
		why = "it lets the program reach the internet and the local network"
	case "container", "ns":
		why = "it joins a network that something else runs in"
	}
	return refusal.Newf("%s is refused: %s", quote(v), why).Hint("--network none").Hint("%s", instead)
}

func setSeccomp(p *Parsed, v string) error { return p.chooseSeccomp(v) }

// chooseSeccomp serves --seccomp and --security-opt seccomp=: they may not
// contradict each other.
func (p *Parsed) chooseSeccomp(v string) error {
	if v == "builtin" {
		v = "default" // docker's word for it
	}
	return p.same("seccomp", v, func(p *Parsed, v string) error {
		if err := checkSeccomp(v); err != nil {
			return err
		}
		p.Spec.Seccomp = v
		return nil
	})
}

func setSecurityOpt(p *Parsed, v string) error {
	end := strings.IndexAny(v, "=:")
	name, value := v, ""
	if end >= 0 {
		name, value = v[:end], v[end+1:]
	}
	switch name {
	case "no-new-privileges":
		if end < 0 || value == "true" {
			return nil
		}
		return refusal.Newf("%s is refused: set-uid programs would gain privileges", quote(v)).
			Hint("--security-opt no-new-privileges")
	case "seccomp":
		return p.chooseSeccomp(value)
	case "apparmor":
		return refusal.Newf("%s is refused: the caller's AppArmor profile stays as it is", quote(v))
	case "label":
		return refusal.Newf("%s is refused: the caller's SELinux label stays as it is", quote(v))
	case "systempaths", "unmask":
		return refusal.Newf("%s is refused: it uncovers the masked paths of /proc", quote(v))
	case "writable-cgroups":
		return refusal.Newf("%s is refused: the program could change its own limits", quote(v))
	}
	return refusal.Newf("%s is not known here", quote(v)).
		Hint("--security-opt no-new-privileges").Hint("--security-opt seccomp=default")
}

func setAllowDegraded(p *Parsed, v string) error {
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name) // "memory, cpu" means no other two limits
		if err := checkDegraded(name); err != nil {
			return err
		}
		if !slices.Contains(p.Spec.AllowDegraded, name) {
			p.Spec.AllowDegraded = append(p.Spec.AllowDegraded, name)
		}
	}
	return nil
}

// setResult has no "-": stdout is the program's, and a file of that name would
// be the surprise of who meant stdout.
func setResult(p *Parsed, v string) error {
	switch v {
	case "":
		return refusal.Newf("the value is empty").Hint("--result result.json")
	case "-", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2":
		return refusal.Newf("%s is one of the program's own streams", quote(v)).
			Hint("--json   # the result on stdout, with the output in it").Hint("--result-fd 3 3>result.json")
	}
	p.ResultFile = v
	return nil
}

// setResultFD keeps the result off the program's own streams: a reader could
// not tell a forged result on stdout from the real one.
func setResultFD(p *Parsed, v string) error {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil || v[0] == '+' {
		return refusal.Newf("%s is not a descriptor number", quote(v)).Hint("--result-fd 3 3>result.json")
	}
	if n < 3 {
		return refusal.Newf("%d is one of the program's own streams", n).Hint("--result-fd 3 3>result.json")
	}
	p.ResultFD = int(n)
	return nil
}

func setTmpfs(_ *Parsed, v string) error {
	target, options, _ := strings.Cut(v, ":")
	if target != "/tmp" {
		return refusal.Newf("%s is refused: the scratch is at /tmp, /work, HOME and /dev/shm, and nowhere else", quote(target))
	}
	for o := range strings.SplitSeq(options, ",") {
		if !slices.Contains([]string{"", "rw", "nosuid", "nodev", "exec"}, o) {
			return refusal.Newf("option %s of /tmp cannot be set on its own", quote(o)).Hint("--disk 64m")
		}
	}
	return nil
}

func setCapDrop(_ *Parsed, v string) error {
	name := strings.TrimPrefix(strings.ToUpper(v), "CAP_")
	if name == "ALL" || (name != "" && strings.Contains(capNames, " "+name+" ") && !strings.Contains(name, " ")) {
		return nil
	}
	return refusal.Newf("%s is not a capability", quote(v)).Hint("--cap-drop ALL")
}

// capNames are those of capabilities(7), up to CAP_CHECKPOINT_RESTORE (Linux 5.9).
const capNames = " CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE" +
	" NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE" +
	" SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL" +
	" SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE "
