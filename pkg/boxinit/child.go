package boxinit

import (
	"sandglass/internal/sys"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// lastCap is the highest number tried when the bounding set is emptied; the
// kernel answers EINVAL from the first that it does not know.
const lastCap = 63

// securebits: root is no one special, no capability survives a change of ids,
// none can be raised as ambient; each locked (capabilities(7)).
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// Child lists what the program's process does to itself between clone and
// execve, in order. Everything that needs a capability comes before the
// capabilities go, and the filter is last, so that nothing of ours has to be
// allowed in it but execve and exit_group. landlock is the ruleset's descriptor,
// -1 for none, and abi its version.
func Child(cfg *wire.Config, landlock, abi int) *sys.Calls {
	c := &sys.Calls{}
	for _, fd := range cfg.Tasks {
		// Moving oneself through "tasks" takes no global lock, unlike
		// cgroup.procs (kernel commit 9a3284fad42f).
		c.Write("join cgroup", int(fd), []byte("0"))
	}
	if len(cfg.CPUs) > 0 {
		// After the cgroups: joining a cpuset gives back all of its CPUs.
		c.Affinity("cpu affinity", cfg.CPUs)
	}
	if cfg.CgroupNS {
		c.Add("cgroup namespace", unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
	}
	c.Add("new session", unix.SYS_SETSID)
	// The caller's would tell the program about it, and decide who may read what
	// it writes.
	c.Add("umask", unix.SYS_UMASK, 0o022)
	// The caller's may have no address chosen at random (setarch -R, a debugger),
	// which makes a bug of the program's easy to exploit. The execve that follows
	// goes by this one.
	c.Add("personality", unix.SYS_PERSONALITY, perLinux)
	for target, fd := range [3]int32{cfg.Stdin, cfg.Stdout, cfg.Stderr} {
		c.Add("stdio", unix.SYS_DUP3, uintptr(fd), uintptr(target), 0)
	}
	if cfg.Terminal {
		// Of the session that was just made: the program's, and nobody else's.
		c.Add("controlling terminal", unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
	}
	for _, r := range cfg.Rlimits {
		c.Rlimit("rlimits", int(r.Resource), r.Soft, r.Hard)
	}
	if cfg.SmallPages {
		// It belongs to the memory, and the one that execve makes inherits it. Until
		// then the memory is init's too, which does as well without.
		c.Add("small pages", unix.SYS_PRCTL, unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	}
	dropPrivileges(c)
	if landlock >= 0 {
		c.Add("landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(landlock), landlockFlags(abi))
	}
	// Not only close-on-exec: nothing of the host is open from here on. A table
	// that is init's too cannot be emptied, see startShared.
	how := uintptr(0)
	if cfg.Listener {
		how = unix.CLOSE_RANGE_CLOEXEC
	}
	c.Add("close descriptors", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), how)
	c.DefaultSignals("default signals")
	c.SignalMask("unblock signals", 0)
	if cfg.Listener {
		c.SeccompListener("seccomp", cfg.Seccomp, sys.WaitKillable())
		return c
	}
	c.Seccomp("seccomp", cfg.Seccomp)
	return c
}

// perLinux is the personality of every process that has asked for no other.
const perLinux = 0

func dropPrivileges(c *sys.Calls) {
	c.Add("ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for i := range uintptr(lastCap + 1) {
		c.Add("bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i)
		c.Tolerate(unix.EINVAL)
	}
	c.Add("securebits", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, securebits)
	c.ClearCaps("capabilities")
	c.Add("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// startProgram makes the program's process. One that waits for a release has
// everything done to it but the execve: what that is for is looked at then.
func startProgram(b *box) error {
	if err := refuseOwnExe(b.cfg.Paths); err != nil {
		return err
	}
	cgroup := -1
	if b.cfg.Box != wire.NoFD {
		cgroup = int(b.cfg.Box)
	}
	roomForInit(b.cfg)
	restore, err := sys.BlockSignals()
	if err != nil {
		return err
	}
	defer restore()
	p := &sys.Program{
		Calls:  Child(b.cfg, b.landlock, b.landlockABI),
		Paths:  b.cfg.Paths,
		Argv:   b.cfg.Argv,
		Env:    b.cfg.Env,
		Cgroup: cgroup,
	}
	switch {
	case b.cfg.Waits == wire.InitWaits:
		b.waiting, b.pid, b.pidfd, err = sys.StartWaiting(p)
		return err
	case b.cfg.Listener:
		return startShared(b, p)
	}
	b.pid, b.pidfd, err = sys.Start(p)
	return err
}
