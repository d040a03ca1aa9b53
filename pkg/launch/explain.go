package launch

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// explainSpawn adds the cause on this host when the clone itself failed. The
// texts are those of causes: one source for a refusal and for doctor's report.
func explainSpawn(e *Ending, err error) {
	var why *refusal.Error
	if errors.As(err, &why) {
		e.Error, e.Hints = why.What, why.Hints
		e.Outcome, e.ExitCode = result.Refused, why.Exit
		return
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return
	}
	step := spawnStep(err)
	c := causes.CloneFailed(step, errno)
	e.Error, e.Hints = c.Text, c.Hints
	if len(c.Hints) > 0 && hostRefuses(step) {
		// Nothing of ours has failed: the host does not give what every run needs.
		e.Outcome, e.ExitCode = result.Refused, refusal.ExitRefused
	}
}

// The steps before init's process does anything itself.
const (
	stepClone = "clone"
	stepMap   = "map ids"
	stepPidfd = "pidfd_send_signal"
)

func hostRefuses(step string) bool { return step == stepClone || step == stepMap || step == stepPidfd }

// spawnStep is what failed: the clone, the mapping, or a call of the process.
func spawnStep(err error) string {
	var call *sys.StartError
	var file *os.PathError
	var why *refusal.Error
	switch {
	case errors.As(err, &why):
		return stepMap
	case errors.As(err, &call):
		return call.Call
	case errors.As(err, &file):
		return stepMap
	}
	return stepClone
}

// explainStep does the same for a step of init's.
func explainStep(e *Ending, step string, errno syscall.Errno) {
	switch errno {
	case unix.EOPNOTSUPP:
		// Init acts on all of its threads at once, which Go cannot do with C in it.
		e.Hints = append(e.Hints, "an embedder that links C: build it with CGO_ENABLED=0, or set InitPath to the sandglass binary")
	case unix.EAGAIN:
		if strings.HasPrefix(step, "ignore signals") {
			e.Hints = append(e.Hints, "prlimit --pid $$ --sigpending=1024   # as root, for this shell")
		}
	case unix.EBUSY:
		if strings.HasSuffix(step, ": seccomp") {
			e.Error += " (an outer container listens to system calls already, and the kernel has one listener for a process)"
			e.Hints = append(e.Hints, "leave --explain-denials out")
		}
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EINVAL, unix.EROFS, unix.EAFNOSUPPORT:
		c := causes.StepFailed(step, errno)
		if c.Text != "" {
			e.Error += " (" + c.Text + ")"
		}
		e.Hints = append(e.Hints, c.Hints...)
	}
}

// toLook is what a root caller needs CAP_SYS_PTRACE for.
const toLook = "to look at the sandbox's processes, which have another id"

// lacksCap refuses the run where a call of a root supervisor failed for the want
// of a capability that somebody has taken from it; nil where it is there.
func lacksCap(err error, name, why string) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return nil
	}
	c := causes.WithoutCap(name, why)
	if c.Text == "" {
		return nil
	}
	r := refusal.Newf("%s", c.Text)
	r.Hints = c.Hints
	return r
}
