package doctor

import (
	"os"
	"strconv"
	"strings"

	"sandglass/pkg/boxinit"
	"sandglass/pkg/mount"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// arg0 is argv[0] of a throwaway child; its only argument names the layer.
const arg0 = "sandglass-doctor"

// Names of the layers, in the order in which they are told. They are stable.
const (
	userNS       = "user namespace"
	ownID        = "own host id"
	mountNS      = "mount namespace"
	pidNS        = "pid namespace"
	netNS        = "network namespace"
	ipcNS        = "ipc namespace"
	utsNS        = "uts namespace"
	cgroupNS     = "cgroup namespace"
	newMounts    = "new mounts"
	bindMounts   = "bind mounts"
	idMapped     = "id-mapped mounts"
	devices      = "devices"
	proc         = "proc"
	scratch      = "scratch"
	pivotRoot    = "pivot_root"
	quotas       = "kernel quotas"
	capabilities = "capabilities"
	rlimits      = "rlimits"
	noNewPrivs   = "no_new_privs"
	seccompLayer = "seccomp"
	landlock     = "landlock"
	timeLayer    = "time"
)

// trial is what the child does for a layer: parts of a run, by the run's code.
type trial struct {
	name   string
	steps  []string               // of boxinit.Steps
	calls  []string               // of boxinit.Child
	mounts func(op *wire.Op) bool // which of the default plan's operations the step "mounts" does
	edit   func(cfg *wire.Config) // what is not as the default plan has it
	after  func() error           // looks at what was made
	alone  bool                   // needs no namespace of its own
	flag   uintptr                // the namespace that this layer is
}

func trials() []trial {
	return []trial{
		{name: userNS, steps: []string{"seal descriptors", "ordinary priority", "hide init", "ignore signals to init"}},
		{name: mountNS, flag: unix.CLONE_NEWNS},
		{name: pidNS, flag: unix.CLONE_NEWPID},
		{name: netNS, flag: unix.CLONE_NEWNET, steps: []string{"loopback", "addresses and sockets of the listed hosts"}},
		{name: ipcNS, flag: unix.CLONE_NEWIPC},
		{name: utsNS, flag: unix.CLONE_NEWUTS, steps: []string{"hostname"}},
		{name: cgroupNS, calls: []string{"cgroup namespace"}},
		{name: newMounts, steps: []string{"mounts"}, mounts: kinds(wire.OpRoot, wire.OpDir, wire.OpFile, wire.OpLink)},
		{name: bindMounts, steps: []string{"mounts"}, after: isReadOnly("usr"),
			mounts: either(kinds(wire.OpRoot, wire.OpFreeze), both(kinds(wire.OpBind), not(below("/dev"))))},
		{name: devices, steps: []string{"mounts"}, mounts: either(kinds(wire.OpRoot, wire.OpDevpts), both(kinds(wire.OpBind), below("/dev")))},
		{name: proc, steps: []string{"mounts"}, mounts: either(kinds(wire.OpRoot, wire.OpProc), both(kinds(wire.OpInner), below("/proc")))},
		{name: scratch, steps: []string{"mounts"}, edit: smallScratch, after: isBounded,
			mounts: either(kinds(wire.OpRoot, wire.OpTmpfs), both(kinds(wire.OpInner), not(below("/proc"))), both(kinds(wire.OpDir), below("/tmp")))},
		{name: pivotRoot, steps: []string{"mounts"}, mounts: kinds(wire.OpRoot, wire.OpPivot)},
		{name: quotas, steps: []string{"find the quotas", "quotas"}},
		{name: capabilities, steps: []string{"drop capabilities of init"}, calls: []string{"ambient capabilities", "bounding set", "securebits", "capabilities"}},
		{name: rlimits, calls: []string{"rlimits"}, alone: true},
		{name: noNewPrivs, calls: []string{"no_new_privs"}, alone: true},
		{name: seccompLayer, steps: []string{"drop capabilities of init", "seccomp of init"}, calls: []string{"no_new_privs", "seccomp"}, alone: true},
		{name: landlock, steps: []string{"landlock ruleset"}, calls: []string{"no_new_privs", "landlock"}},
		{name: timeLayer, alone: true},
	}
}

func find(name string) *trial {
	for _, t := range trials() {
		if t.name == name {
			return &t
		}
	}
	return nil
}

// Init must be called at the start of main, after sandbox.Init: in a throwaway
// child of Examine it never returns.
func Init() {
	if len(os.Args) != 2 || os.Args[0] != arg0 {
		return
	}
	t := find(os.Args[1])
	if t == nil {
		os.Exit(1)
	}
	cfg, err := t.config()
	if err != nil {
		os.Exit(1)
	}
	boxinit.Try(boxinit.Trial{Config: cfg, Steps: t.steps, Calls: t.calls, After: t.after, Name: t.name, Wait: t.name == timeLayer})
}

// config is the plan of a default run, with the part of its mounts that the
// layer is made of.
func (t *trial) config() (*wire.Config, error) {
	s := policy.Default()
	s.Program.Command = []string{"true"}
	p, err := plan.Begin(s)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	cfg := &wire.Config{
		Hostname: plan.Hostname, Loopback: true, Box: wire.NoFD, CgroupNS: true,
		Rlimits: p.Rlimits, Seccomp: p.Filter.BPF, InitSeccomp: seccomp.ForInit(), Writable: []string{"/"},
	}
	if t.mounts == nil {
		return cfg, nil
	}
	items, err := rootfs.Plan(rootfs.Input{
		Image: s.Image, UID: s.User.UID, GID: s.User.GID, Workdir: s.Workdir,
		Disk: s.Limits.Disk, DiskInodes: s.Limits.DiskInodes, Proc: true,
	})
	if err != nil {
		return nil, err
	}
	for i := range items {
		if t.mounts(&items[i].Op) {
			cfg.Mounts = append(cfg.Mounts, items[i].Op)
		}
	}
	if t.edit != nil {
		t.edit(cfg)
	}
	return cfg, nil
}

func kinds(list ...wire.Kind) func(*wire.Op) bool {
	return func(op *wire.Op) bool {
		for _, k := range list {
			if op.Kind == k {
				return true
			}
		}
		return false
	}
}

func below(dir string) func(*wire.Op) bool {
	return func(op *wire.Op) bool { return op.Target == dir || strings.HasPrefix(op.Target, dir+"/") }
}

func not(f func(*wire.Op) bool) func(*wire.Op) bool { return func(op *wire.Op) bool { return !f(op) } }

func both(f, g func(*wire.Op) bool) func(*wire.Op) bool {
	return func(op *wire.Op) bool { return f(op) && g(op) }
}

func either(list ...func(*wire.Op) bool) func(*wire.Op) bool {
	return func(op *wire.Op) bool {
		for _, f := range list {
			if f(op) {
				return true
			}
		}
		return false
	}
}

// The size of the scratch that isBounded fills.
const (
	scratchBytes  = 256 << 10
	scratchInodes = 64
)

func smallScratch(cfg *wire.Config) {
	for i := range cfg.Mounts {
		if op := &cfg.Mounts[i]; op.Kind == wire.OpTmpfs {
			op.Size, op.Inodes = scratchBytes, scratchInodes
		}
	}
}

// isBounded writes more than the scratch holds. The new root is the working
// directory since it was mounted.
func isBounded() error {
	fd, err := unix.Open("work/bytes", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i := range 2 * scratchInodes {
		if err = unix.Mkdir("tmp/"+strconv.Itoa(i), 0o700); err != nil {
			break
		}
	}
	if err != unix.ENOSPC {
		return &mount.Error{Op: "fill the scratch", Errno: unix.EFBIG, Note: "the number of files of a tmpfs does not hold"}
	}
	block := make([]byte, 64<<10)
	for range 2 * scratchBytes / len(block) {
		if _, err = unix.Write(fd, block); err != nil {
			break
		}
	}
	if err != unix.ENOSPC {
		return &mount.Error{Op: "fill the scratch", Errno: unix.EFBIG, Note: "the size of a tmpfs does not hold"}
	}
	return nil
}

// isReadOnly looks at the mount that was bound there, if the host has one.
func isReadOnly(path string) func() error {
	return func() error {
		var fs unix.Statfs_t
		if err := unix.Statfs(path, &fs); err != nil {
			return nil
		}
		if fs.Flags&unix.ST_RDONLY == 0 {
			return &mount.Error{Op: "make " + path + " read-only", Errno: unix.EROFS, Note: "it can be written all the same"}
		}
		return nil
	}
}
