package check

import (
	"slices"
	"strconv"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// The sizes of the probes' attacks, each well above the limit it meets and
// small enough for the host where the limit does not hold.
const (
	attackMemory  = 256      // MiB, against 64
	attackScratch = 128      // MiB, against 32 of memory
	attackForks   = 120      // processes of several threads, against 64
	attackCPU     = 800      // ms on three threads, against a tenth of a CPU
	attackDisk    = 32       // MiB, against 8
	attackInodes  = 1024     // files, against 256
	attackOutput  = 64       // MiB, against 1
	megabyte      = 1 << 20  //
	growth        = 32 << 20 // bytes that the supervisor may grow by in a flood
)

func number(n int) func(*bait) []string {
	return func(*bait) []string { return []string{strconv.Itoa(n)} }
}

func limits(set func(*policy.Limits)) func(*bait, *sandbox.Spec) {
	return func(_ *bait, s *sandbox.Spec) { set(&s.Limits) }
}

func groups(g ...string) func(*bait) []string { return func(*bait) []string { return g } }

// controls is the whole list. An id is never used for anything else again.
func controls() []control {
	return slices.Concat(ruleControls(), secretControls(), limitControls(), kernelControls(), hostsControls())
}

// ruleControls are the rule's own four probes.
func ruleControls() []control {
	return []control{
		{id: "c01", claim: "environment: no secret of the caller's appears", layer: "environment",
			probe: "environment", judge: judgeEnvironment},
		{id: "c02", claim: "/etc/hostname: not the host's", layer: "uts", probe: "hostname", judge: judgeHostname},
		{id: "c03", claim: "https://test.example.org: nothing leaves, no name is asked for, it fails at once", layer: "net",
			probe: "request", args: (*bait).targets, judge: judgeRequest},
		{id: "c04", claim: "endless loop: stopped at the time limit", layer: "clock",
			probe: "loop", whole: loopStopped},
	}
}

// secretControls are the channels by which the host could be seen or reached.
func secretControls() []control {
	return []control{
		{id: "c05", claim: "descriptors: only stdin, stdout and stderr are open, and they are pipes", layer: "descriptors",
			probe: "descriptors", judge: judgeDescriptors},
		{id: "c06", claim: "host files: not read, not changed", layer: "mount",
			probe: "files", args: func(b *bait) []string { return b.files }, judge: judgeFiles},
		{id: "c07", claim: "/proc: no process of the host", layer: "pid", probe: "processes", judge: judgeProcesses},
		{id: "c08", claim: "/proc/1: the sandbox's init cannot be opened or traced", layer: "proc",
			probe: "init", judge: judgeInit},
		{id: "c09", claim: "signals: none reaches a process of the host", layer: "pid",
			probe: "signals", args: preyPID, judge: judgeSignals},
		{id: "c10", claim: "keyring: no key of the caller's", layer: "seccomp",
			probe: "keyring", args: func(b *bait) []string { return []string{b.keyName()} }, judge: judgeKeyring},
		{id: "c11", claim: "abstract sockets: none of the host's", layer: "net",
			probe: "abstract", args: func(b *bait) []string { return []string{b.socketName()} }, judge: judgeAbstract},
		{id: "c12", claim: "network view: loopback alone, no socket of the host", layer: "net",
			probe: "network", judge: judgeNetwork},
		{id: "c13", claim: "System V memory: none of the host's", layer: "ipc", probe: "ipc", args: segmentArgs, judge: judgeIPC},
		{id: "c14", claim: "executable: the host's own binary cannot be written", layer: "mount",
			probe: "executable", judge: judgeExecutable},
		{id: "c15", claim: "links in /out: never followed to the host", layer: "artifacts",
			probe: "artifacts", args: func(b *bait) []string { return b.files[:1] }, spec: outTo("links"), judge: judgeArtifacts},
		{id: "c16", claim: "two sandboxes: none sees the other's files, sockets or processes", layer: "mount", whole: twoSandboxes},
	}
}

// limitControls are the limits. Those that measure run alone.
func limitControls() []control {
	return []control{
		{id: "c17", claim: "memory: stopped at the limit", layer: "cgroup", limit: "memory", anyEnd: true,
			probe: "memory", args: number(attackMemory), judge: judgeMemory,
			spec: limits(func(l *policy.Limits) { l.Memory = 64 * megabyte })},
		{id: "c18", claim: "memory: files of the scratch count", layer: "cgroup", limit: "memory", anyEnd: true,
			probe: "scratch", args: number(attackScratch), judge: judgeScratch,
			spec: limits(func(l *policy.Limits) { l.Memory, l.Disk = 32*megabyte, 256*megabyte })},
		{id: "c19", claim: "fork bomb: bounded by the process limit", layer: "cgroup", limit: "pids", anyEnd: true,
			probe: "fork", args: number(attackForks), judge: judgeFork},
		{id: "c20", claim: "CPU rate: held however many threads run", layer: "cgroup", limit: "cpu", alone: true,
			probe: "cpu", args: number(attackCPU), judge: judgeCPU,
			spec: limits(func(l *policy.Limits) { l.MilliCPU = 100 })},
		{id: "c21", claim: "disk: all writable places together hold the limit", layer: "mount",
			probe: "disk", args: number(attackDisk), judge: judgeDisk,
			spec: limits(func(l *policy.Limits) { l.Disk = 8 * megabyte })},
		{id: "c22", claim: "files: all writable places together hold the limit", layer: "mount",
			probe: "inodes", args: number(attackInodes), judge: judgeInodes,
			spec: limits(func(l *policy.Limits) { l.DiskInodes = 256 })},
		{id: "c23", claim: "output flood: cut at the limit, in constant memory", layer: "supervisor", alone: true,
			spec: limits(func(l *policy.Limits) { l.Output = megabyte }), whole: outputFlood},
		{id: "c24", claim: "rlimits: none can be raised", layer: "rlimits", probe: "rlimits", judge: judgeRlimits},
		{id: "c25", claim: "core dump: no file is left", layer: "rlimits", anyEnd: true,
			probe: "core", spec: outTo("core"), judge: judgeCore},
		{id: "c26", claim: "own cgroup: the view cannot be written, and shows no other", layer: "cgroup",
			probe: "cgroup", judge: judgeCgroup},
		{id: "c27", claim: "daemons: none is left when the program ends", layer: "pid", alone: true, whole: daemonsGone},
		{id: "c28", claim: "supervisor killed by SIGKILL: nothing of the sandbox is left", layer: "pid", alone: true, whole: supervisorKilled},
		{id: "c29", claim: "afterwards: no cgroup of these sandboxes is left", layer: "cgroup", alone: true, whole: cgroupsGone},
	}
}

// kernelControls are privileges and the kernel's own interfaces.
func kernelControls() []control {
	return []control{
		{id: "c30", claim: "policy: Seccomp 2, NoNewPrivs 1, all namespaces new", layer: "seccomp", probe: "hello", judge: judgePolicy},
		{id: "c31", claim: "capabilities: none in any set, no way to another user", layer: "capabilities", probe: "ids", judge: judgeIDs},
		{id: "c32", claim: "set-uid: no such bit on a file of a writable mount", layer: "seccomp",
			probe: "setid", args: groups("/shared", "/tmp"), spec: shareDirectory, judge: judgeSetID},
		{id: "c33", claim: "user namespace: no new one", layer: "seccomp", probe: "userns",
			judge: func(_ *bait, s *saw) verdict { return s.is("clone NEWUSER", "EPERM", "unshare NEWUSER", "EPERM") }},
		callControl("c34", "namespaces: no new one, none entered", "namespaces"),
		callControl("c35", "mount: nothing can be mounted or unmounted", "mount"),
		callControl("c36", "ptrace: no process's memory or descriptors", "trace"),
		callControl("c37", "sockets: no raw, packet, vsock, AF_ALG or other kind", "sockets"),
		callControl("c38", "io_uring: not there", "io_uring"),
		callControl("c39", "bpf, perf_event_open, userfaultfd, file handles: refused", "kernel"),
		callControl("c40", "modules, kexec, reboot, swap, clocks, host name: refused", "host"),
		{id: "c41", claim: "foreign system calls (x32): the process is killed", layer: "seccomp", anyEnd: true,
			probe: "foreign", judge: judgeForeign},
		{id: "c42", claim: "foreign programs (i386): killed at their first call", layer: "seccomp", anyEnd: true,
			probe: "i386", judge: judgeI386},
		{id: "c43", claim: "terminal: nothing can be typed into one (TIOCSTI)", layer: "seccomp", probe: "terminal", judge: judgeTerminal,
			spec: func(_ *bait, s *sandbox.Spec) { s.Pty = true }},
		{id: "c44", claim: "devices: only null, zero, full, random and urandom, none can be made", layer: "mount",
			probe: "devices", judge: judgeDevices},
		{id: "c45", claim: "root: read-only but for the scratch", layer: "mount", probe: "readonly", judge: judgeReadOnly},
		{id: "c46", claim: "/proc/sys, sysrq, /proc/kcore: not written, not read", layer: "proc", probe: "sysctl", judge: judgeSysctl},
	}
}

// callControl is a group of system calls that the filter refuses.
func callControl(id, claim, group string) control {
	return control{id: id, claim: claim, layer: "seccomp", probe: "calls", args: groups(group),
		judge: func(_ *bait, s *saw) verdict { return judgeCalls(group, s) }}
}

// patience bounds the wait for the end of killed processes. Not longer: the next
// start of any sandglass sweeps them away, and would hide that they lived on.
const patience = 3 * time.Second
