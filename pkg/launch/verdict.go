package launch

import (
	"fmt"
	"syscall"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// verdict says who ended the run. The kernel's out-of-memory events come
// first: a clock that fires while the kernel is killing does not hide them.
// After them comes why we killed it, then what the program did to itself.
func (s *session) verdict() {
	e := s.end
	switch {
	case s.broken != nil:
		e.Outcome, e.Error = result.Failed, "the sandbox was stopped: "+s.broken.Error()
	case s.failed != nil && (s.started.IsZero() || s.failed.Type == wire.TypeFailed):
		s.notStarted()
	case e.Stats.OOMKills > 0 || s.cause == result.Memory:
		e.Outcome = result.Memory
		e.Signal = int(unix.SIGKILL)
	case s.cause == result.Failed:
		e.Outcome, e.Error = result.Failed, fmt.Sprintf("setting up the sandbox took more than %s", setupTime)
	case s.cause == result.CPUTime, s.cause != "" && (s.exited == nil || s.late):
		e.Outcome = s.cause
		e.Signal = int(unix.SIGKILL)
	case s.exited != nil:
		s.ended(unix.WaitStatus(s.exited.Status))
	default:
		e.Outcome, e.Error = result.Failed, "the sandbox's init ended without a word"
		if s.started.IsZero() {
			e.Error = "the sandbox's init ended during set-up without a word"
		}
	}
}

// ended is the program's own end.
func (s *session) ended(status unix.WaitStatus) {
	if status.Signaled() {
		s.end.Outcome, s.end.Signal = result.Signaled, int(status.Signal())
		return
	}
	s.end.Outcome, s.end.ExitCode = result.Exited, status.ExitStatus()
}

// notStarted turns init's report into the one error line.
func (s *session) notStarted() {
	e, r := s.end, s.failed
	errno := syscall.Errno(r.Errno)
	if r.Type == wire.TypeFailed {
		e.Outcome = result.Failed
		e.Error = "init: " + r.Step + ": " + detail(r, errno)
		explainStep(e, r.Step, errno)
		return
	}
	e.Outcome = result.Refused
	name := s.box.Config.Argv[0]
	switch {
	case errno == unix.ENOENT && r.Path == "":
		e.ExitCode = refusal.ExitNotFound
		e.Error = "command not found: " + name
		e.Hints = []string{"sandglass run -v /path/of/" + base(name) + ":/opt/" + base(name) + " -- /opt/" + base(name) + "   # if it is on the host"}
	case errno == unix.ENOENT || errno == unix.ENOTDIR && r.Path != "":
		e.ExitCode = refusal.ExitNotFound
		e.Error = r.Path + ": its interpreter or loader does not exist inside"
		e.Hints = []string{"head -c 128 " + r.Path + " | head -n 1   # the #! line names the interpreter"}
	case errno == unix.ENOTDIR:
		e.ExitCode = refusal.ExitNotFound
		e.Error = "command not found: " + name
		e.Hints = []string{"sandglass run -- sh -c 'ls -ld " + name + "'"}
	case errno == unix.ENOEXEC:
		e.ExitCode = refusal.ExitNotExecutable
		e.Error = r.Path + ": not a program this machine can run (wrong architecture, or a script without a #! line)"
		e.Hints = []string{"sandglass run -- sh " + r.Path + "   # if it is a shell script"}
	case errno == unix.E2BIG:
		e.ExitCode = refusal.ExitNotExecutable
		e.Error = "argument list too long"
		e.Hints = []string{"sandglass run -i -- COMMAND < data   # hand large data in on stdin, or with -v"}
	default:
		e.ExitCode = refusal.ExitNotExecutable
		e.Error = "cannot execute " + name + ": " + errno.Error()
		if errno == unix.EACCES {
			e.Error = "not executable: " + name
			e.Hints = []string{"chmod +x " + base(name) + "   # or name its interpreter: sandglass run -- sh " + name}
		}
	}
}

func detail(r *wire.Report, errno syscall.Errno) string {
	if r.Path != "" {
		return r.Path
	}
	return errno.Error()
}

func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}
