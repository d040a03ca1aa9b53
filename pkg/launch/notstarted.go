package launch

import (
	"strings"
	"syscall"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// notStarted turns init's report into the one error line.
func (s *session) notStarted() {
	e, r := s.end, s.failed
	errno := syscall.Errno(r.Errno)
	if r.Type == wire.TypeFailed {
		if asked(e, r, errno, &s.box.Around) {
			return
		}
		e.Outcome = result.Failed
		e.Error = "init: " + refusal.Line(r.Step+": "+detail(r, errno)) // with names of an image's
		explainStep(e, r.Step, errno)
		return
	}
	e.Outcome, e.ExitCode = result.Refused, refusal.ExitNotExecutable
	// Both may come from a model: they are quoted in a sentence as in a hint.
	argv0 := s.box.Config.Argv[0]
	name, path := refusal.Word(argv0), refusal.Word(r.Path)
	again := s.box.Around.run()
	switch {
	case errno == unix.ENOENT && r.Path == "", errno == unix.ENOTDIR && r.Path == "":
		e.ExitCode = refusal.ExitNotFound
		e.Error, e.Hints = "command not found: "+name+s.box.Around.notIn(), s.box.Around.whereIs(argv0)
	case errno == unix.ENOENT || errno == unix.ENOTDIR:
		e.ExitCode = refusal.ExitNotFound
		e.Error = path + ": its interpreter or loader does not exist inside"
		e.Hints = []string{"head -c 128 -- " + refusal.Shell(s.box.Around.Root+r.Path) + " | head -n 1   # the #! line names the interpreter"}
	case errno == unix.ENOEXEC:
		e.Error = path + ": not a program this machine can run (wrong architecture, or a script without a #! line)"
		e.Hints = []string{again + " -- sh " + refusal.Shell(r.Path) + "   # if it is a shell script"}
	case errno == unix.E2BIG:
		e.Error = "argument list too long"
		e.Hints = []string{again + " -i -- COMMAND < data   # hand large data in on stdin, or with -v"}
	case errno == unix.EISDIR:
		e.Error = "not executable: " + name + " is a directory"
		e.Hints = []string{again + " -- ls -- " + refusal.Shell(argv0) + "   # what it holds"}
	case errno == unix.EACCES:
		e.Error = "not executable: " + name
		e.Hints = []string{
			again + " -- cat -- " + refusal.Shell(argv0) + "   # to read it",
			again + " -- sh " + refusal.Shell(argv0) + "   # if it is a shell script",
		}
	default:
		e.Error = "cannot execute " + name + ": " + errno.Error()
	}
}

// asked are the failures of set-up that the caller's own request makes and that
// only the finished root shows: nothing of ours has failed, and nothing was run.
func asked(e *Ending, r *wire.Report, errno syscall.Errno, around *Around) bool {
	if dir, ok := strings.CutPrefix(r.Step, "enter "); ok && (errno == unix.ENOENT || errno == unix.ENOTDIR || errno == unix.EACCES || errno == unix.ELOOP) {
		e.Error = "--workdir: " + refusal.Word(dir) + ": " + errno.Error() + " inside"
		if errno == unix.ENOENT {
			e.Error = "--workdir: there is no directory " + refusal.Word(dir) + " inside"
		}
		e.Hints = []string{"--workdir /work"}
		if !ours(dir) {
			e.Hints = []string{"-v \"$PWD\":" + refusal.Shell(dir) + " -w " + refusal.Shell(dir) + "   # if it is to be this directory of the host", "--workdir /work"}
		}
		e.Outcome, e.ExitCode = result.Refused, refusal.ExitRefused
		return true
	}
	target, ok := strings.CutPrefix(r.Step, "mount ")
	if !ok || r.Path == "" {
		return false
	}
	switch errno {
	case unix.ELOOP: // a link of an image's own must not choose where a mount lands
		e.Hints = []string{"give the mount another target, such as /task: a symbolic link in the root is never followed"}
	case unix.EROFS, unix.EACCES:
		e.Hints = []string{"give the mount a target of its own, such as /task"}
	default:
		return false
	}
	why := refusal.Line(r.Path)
	if around.Image != "" && errno != unix.ELOOP { // init says it of the host, whatever the root is
		why = "the target is not there, and making it would change " + around.Image
	}
	e.Error = "mount target " + refusal.Word(target) + ": " + why
	e.Outcome, e.ExitCode = result.Refused, refusal.ExitRefused
	return true
}

// ours: nothing can be mounted there.
func ours(path string) bool {
	return below(path, "/proc", "/sys", "/dev", "/code", "/out", "/etc", "/usr", "/bin", "/sbin", "/lib")
}

func below(path string, dirs ...string) bool {
	for _, d := range dirs {
		if rest, ok := strings.CutPrefix(path, d); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

func detail(r *wire.Report, errno syscall.Errno) string {
	if r.Path != "" {
		return r.Path
	}
	return errno.Error()
}
