package launch

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/boxinit"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// initCaps are the capabilities, in the new user namespace only, that init
// needs until the program starts: mounts and namespaces, the bounding set, lo,
// the namespace's own quotas.
var initCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_RESOURCE}

// Namespaces are always all new. The cgroup namespace is made by the program's
// own process, for it must be rooted where the program is.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Init is a sandbox's PID 1 from its clone on. It has no plan yet, and nothing
// of the host's but its control socket.
type Init struct {
	began      time.Time
	control    *os.File
	pid, pidfd int
	process    *os.File // of pidfd
	err        error
	ready      chan struct{} // closed when init runs, or err is set
	done       chan struct{} // closed when it is nobody's any more
}

// Boot clones init in the background: that, and the start of its runtime, take
// as long as planning the run does. Either Run or Cancel ends it.
func Boot(self string, id Identity, g *cgroup.Group) *Init {
	in := &Init{began: time.Now(), ready: make(chan struct{}), done: make(chan struct{})}
	group := -1
	if g != nil {
		group = g.InitFD()
	}
	go in.hold(self, id, group)
	runtime.Gosched() // it first: planning has time, everything inside waits for the clone
	return in
}

// hold keeps the thread that cloned init until init has ended: its
// parent-death signal is tied to it.
func (in *Init) hold(self string, id Identity, group int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	in.err = in.clone(self, id, group)
	close(in.ready)
	<-in.done
}

func (in *Init) clone(self string, id Identity, group int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[1])
	if in.pid, in.pidfd, err = spawn(self, []string{boxinit.Arg0}, id, Namespaces, group, pair[1]); err != nil {
		unix.Close(pair[0])
		return withoutGroup(err, self, id, group, pair[1])
	}
	if err = reachable(in.pidfd); err != nil {
		unix.Close(pair[0])
		unix.Close(in.pidfd)
		reapUnreachable(in.pid)
		return err
	}
	in.control, in.process = pollable(pair[0], "control"), pollable(in.pidfd, "pidfd")
	if err = sendIDs(in.control, &id); err != nil {
		kill(in.pidfd)
		await(in.pid)
		in.close()
	}
	return err
}

// sendIDs has init take ids that the helpers have mapped.
func sendIDs(control *os.File, id *Identity) error {
	if !id.helped() {
		return nil
	}
	return send(control, wire.Frame(wire.TypeIDs, (&wire.IDs{UID: uint32(id.InsideUID), GID: uint32(id.InsideGID)}).Encode()))
}

// withoutGroup finds the better reason where clone3, which a group of cgroup v2
// needs, is not there: filters of outer containers hide it, for they cannot look
// at its flags, and refuse the namespaces themselves by clone.
func withoutGroup(err error, self string, id Identity, group, control int) error {
	if group < 0 || !errors.Is(err, unix.ENOSYS) || spawnStep(err) != stepClone {
		return err
	}
	pid, pidfd, e := spawn(self, []string{boxinit.Arg0}, id, Namespaces, -1, control)
	if e != nil {
		return e
	}
	unix.Close(pidfd)
	reapUnreachable(pid)
	return err
}

// Failed is why init could not be started, nil when it was, or is no more than
// not there yet: it waits for that.
func (in *Init) Failed() error {
	<-in.ready
	if in.err == nil {
		return nil
	}
	e := &Ending{Error: in.err.Error()}
	explainSpawn(e, in.err)
	r := refusal.Newf("%s", e.Error)
	r.Hints = e.Hints
	return r
}

// Cancel ends an init that never got a plan. After Run it does nothing.
func (in *Init) Cancel() {
	<-in.ready
	select {
	case <-in.done:
		return
	default:
	}
	if in.err == nil {
		kill(in.pidfd)
		await(in.pid)
		in.close()
	}
	close(in.done)
}

func (in *Init) close() {
	in.process.Close()
	in.control.Close()
}

// spawn clones init, with the control socket as its descriptor 3 and none for
// stdio: Go's runtime opens /dev/null there.
func spawn(self string, argv []string, id Identity, namespaces uintptr, group, control int) (pid, pidfd int, err error) {
	// Out of the way of the numbers that the child closes and uses.
	high, err := unix.FcntlInt(uintptr(control), unix.F_DUPFD_CLOEXEC, boxinit.ControlFD+1)
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(high)
	p := initProgram(self, argv, initCalls(id, high), high, group)
	p.Owner = id.owner()
	if id.helped() {
		// The helpers take longer than a runtime does to start: init takes its ids
		// when it hears that they are there, see boxinit.
		p.AtOnce, p.Env = true, append(p.Env, boxinit.IDsLater)
		return sys.Spawn(p, namespaces, func(pid int) error { return mapByHelpers(&id, pid) })
	}
	return sys.Spawn(p, namespaces, func(pid int) error {
		return sys.MapIDs(pid, id.InsideUID, id.HostUID, id.InsideGID, id.HostGID, id.Mapped)
	})
}

func initProgram(self string, argv []string, calls *sys.Calls, control, group int) *sys.Program {
	return &sys.Program{
		Calls: calls,
		Paths: []string{self},
		Argv:  argv,
		// With one processor init needs few threads, and always as many: they
		// count where only RLIMIT_NPROC bounds the program.
		Env:    []string{"GOMAXPROCS=1"},
		Cgroup: group,
		Keep:   []int{control},
	}
}

// perLinux is the personality of every process that has asked for no other.
const perLinux = 0

// initCalls is what init's process does before its execve: once its ids are
// mapped, or without any, to change them later.
func initCalls(id Identity, control int) *sys.Calls {
	c := &sys.Calls{}
	c.Add("new session", unix.SYS_SETSID)
	// The kernel asks for it at the execve: a caller under setarch -R would have init's
	// addresses known to whoever attacks it, and uname and the map's layout be others
	// than those that were tested. The supervisor's own is the caller's business.
	c.Add("personality", unix.SYS_PERSONALITY, perLinux)
	need := initCaps
	if id.helped() {
		need = append(slices.Clone(need), unix.CAP_SETUID, unix.CAP_SETGID)
	} else {
		takeIDs(c, id)
	}
	var caps uint32
	for _, n := range need {
		caps |= 1 << n
	}
	c.SetCaps("capabilities", caps)
	for _, n := range need {
		c.Add("ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n, 0, 0)
	}
	fewFiles(c)
	descriptors(c, control)
	return c
}

// fewFiles keeps Go's runtime from looking for a CPU limit when init starts, which
// it does whatever GODEBUG and GOMAXPROCS say: it reads the cgroup's name and all
// mounts of the host for it. With no descriptor beyond init's own it cannot, and
// does without. Before anything else is opened package syscall raises the limit to
// the hard one, as it does in every Go program.
func fewFiles(c *sys.Calls) {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) == nil {
		c.Rlimit("few files", unix.RLIMIT_NOFILE, min(boxinit.ControlFD+1, now.Cur), now.Max)
	}
}

func takeIDs(c *sys.Calls, id Identity) {
	if id.Mapped {
		// A root caller's supplementary groups must go, for group root may read
		// much; an ordinary user's cannot (user_namespaces(7)).
		c.Add("groups", unix.SYS_SETGROUPS, 0, 0)
	}
	c.Add("group", unix.SYS_SETRESGID, uintptr(id.InsideGID), uintptr(id.InsideGID), uintptr(id.InsideGID))
	// Without it the change from user 0 inside would take the capabilities.
	c.Add("keep capabilities", unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0, 0, 0)
	c.Add("user", unix.SYS_SETRESUID, uintptr(id.InsideUID), uintptr(id.InsideUID), uintptr(id.InsideUID))
}

// descriptors are the last calls before init's execve.
func descriptors(c *sys.Calls, control int) {
	c.Add("close stdio", unix.SYS_CLOSE_RANGE, 0, 2, 0)
	c.Add("control socket", unix.SYS_DUP3, uintptr(control), boxinit.ControlFD, 0)
	c.Add("seal descriptors", unix.SYS_CLOSE_RANGE, boxinit.ControlFD+1, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
	c.DefaultSignals("default signals")
	c.SignalMask("unblock signals", 0)
}
