package launch

import (
	"errors"
	"syscall"

	"sandglass/pkg/doctor"

	"golang.org/x/sys/unix"
)

// explainSpawn adds the cause on this host when the clone itself failed. The
// texts are doctor's: one source for a refusal and for the doctor's report.
func explainSpawn(e *Ending, err error) {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return
	}
	c := doctor.CloneFailed(errno)
	e.Error, e.Hints = c.Text, c.Hints
}

// explainStep does the same for a step of init's.
func explainStep(e *Ending, step string, errno syscall.Errno) {
	switch errno {
	case unix.EOPNOTSUPP:
		// Init acts on all of its threads at once, which Go cannot do with C in it.
		e.Hints = append(e.Hints, "an embedder that links C: build it with CGO_ENABLED=0, or set InitPath to the sandglass binary")
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EINVAL:
		if c := doctor.StepFailed(step, errno); c.Text != "" {
			e.Error += " (" + c.Text + ")"
			e.Hints = append(e.Hints, c.Hints...)
		}
	}
}
