package launch

import (
	"os"
	"runtime"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/boxinit"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Trial is a throwaway child of doctor's, started as init is: the same calls,
// in the same order. Nothing untrusted runs in it.
type Trial struct {
	Self     string
	Identity Identity
	// Namespaces are the new ones, Namespaces for all that a run has; 0 leaves
	// the child where the caller is, for what needs none.
	Namespaces uintptr
	Argv       []string
	// Group is what the child is cloned into, as init is on cgroup v2; nil for none.
	Group *cgroup.Group
}

// Tried is what a trial came to.
type Tried struct {
	// Step, What and Hints are those of a run that failed there, "" when all went
	// well. Step is "clone", "map ids" or a step of init's.
	Step, What string
	Hints      []string
	Landlock   int // version that was prepared
	// Killed: the child was still there and ended by the kill through its pidfd;
	// Unkillable and its hints are why it could not be, which is no fault of the
	// layer that was tried.
	Killed     bool
	Unkillable string
	KillHints  []string
}

// Run starts the child, takes its one report and ends it.
func (t *Trial) Run() Tried {
	runtime.LockOSThread() // the child dies with this thread
	defer runtime.UnlockOSThread()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return failedTrial(err)
	}
	control := os.NewFile(uintptr(pair[0]), "control")
	defer control.Close()
	pid, pidfd, err := t.spawn(pair[1])
	unix.Close(pair[1])
	if err != nil {
		return failedTrial(err)
	}
	defer unix.Close(pidfd)
	if t.Namespaces != 0 {
		if err := sendIDs(control, &t.Identity); err != nil {
			reapUnreachable(pid)
			return failedTrial(err)
		}
	}
	r := lastWord(control)
	status, err := end(pid, pidfd, control)
	got := Tried{Killed: err == nil && status.Signaled() && status.Signal() == unix.SIGKILL}
	switch {
	case r == nil:
		got.Step, got.What = "report", "the trial's process ended without a word"
	case r.Type == wire.TypeFailed:
		got = explained(r)
	default:
		got.Landlock = int(r.Landlock)
	}
	if err != nil {
		kill := failedTrial(err)
		got.Unkillable, got.KillHints = kill.What, kill.Hints
	}
	return got
}

func (t *Trial) spawn(control int) (pid, pidfd int, err error) {
	if err := causes.Proc(); err != nil && t.Namespaces != 0 {
		return 0, -1, err
	}
	group := -1
	if t.Group != nil {
		group = t.Group.InitFD()
	}
	if t.Namespaces != 0 {
		return spawn(t.Self, t.Argv, t.Identity, t.Namespaces, group, control)
	}
	high, err := unix.FcntlInt(uintptr(control), unix.F_DUPFD_CLOEXEC, boxinit.ControlFD+1)
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(high)
	c := &sys.Calls{}
	descriptors(c, high)
	return sys.Spawn(initProgram(t.Self, t.Argv, c, high, group), 0, func(int) error { return nil })
}

func failedTrial(err error) Tried {
	if r, ok := err.(*refusal.Error); ok {
		return Tried{Step: stepClone, What: r.What, Hints: r.Hints}
	}
	e := &Ending{Error: err.Error()}
	explainSpawn(e, err)
	return Tried{Step: spawnStep(err), What: e.Error, Hints: e.Hints}
}

// explained words a step as the run's own error does.
func explained(r *wire.Report) Tried {
	s := &session{end: &Ending{}, box: &Box{}, failed: r}
	s.notStarted()
	return Tried{Step: r.Step, What: s.end.Error, Hints: s.end.Hints}
}

// lastWord is the child's one report, nil for none within the time of a set-up.
func lastWord(control *os.File) *wire.Report {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(control.Fd()), Events: unix.POLLIN}}, int(setupTime.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil
		}
		t, body, err := wire.ReadFrame(control, wire.MaxReport)
		if err != nil {
			return nil
		}
		r, err := wire.DecodeReport(t, body)
		if err != nil {
			return nil
		}
		return r
	}
}

// end kills the child through its pidfd, as a run's clock does, and waits for it.
// One that no signal reaches ends with its control socket.
func end(pid, pidfd int, control *os.File) (unix.WaitStatus, error) {
	if err := reachable(pidfd); err != nil {
		control.Close()
		return reapUnreachable(pid), err
	}
	kill(pidfd)
	return await(pid), nil
}

// reapUnreachable ends a child that has not been waited for: the number is no
// other's.
func reapUnreachable(pid int) unix.WaitStatus {
	unix.Kill(pid, unix.SIGKILL)
	return await(pid)
}

func await(pid int) unix.WaitStatus {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return status
		}
	}
}

// reachable says whether a process can be ended by its pidfd: a filter of an
// outer container may refuse it (Docker's did until libseccomp knew the call),
// and every limit on time would be nothing.
func reachable(pidfd int) error {
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil && err != unix.ESRCH {
		return &sys.StartError{Call: stepPidfd, Errno: err.(unix.Errno)}
	}
	return nil
}
