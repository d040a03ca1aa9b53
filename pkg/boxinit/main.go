package boxinit

import (
	"os"

	"sandglass/internal/sys"
	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Arg0 is argv[0] of the re-executed binary when it is init.
const Arg0 = "sandglass-init"

// Wanted says that this process was started as a sandbox's init.
func Wanted() bool { return len(os.Args) > 0 && os.Args[0] == Arg0 && os.Getpid() == 1 }

// Init begins here and not in main: what is linked beside this package need not be
// initialized in a sandbox. It must work on the main thread (PDEATHSIG, the
// working directory's root, namespaces and credentials are all per thread), which
// functions of this name are run on. runtime.LockOSThread, which would say so once
// more, costs a thread: the runtime then keeps one to make others from.
func init() {
	if Wanted() {
		run()
	}
}

// run is init. It never returns: it exits with 0 when it has told the
// supervisor what happened, 1 when it could not.
func run() {
	b := newBox(&wire.Config{})
	for _, s := range Steps() {
		if err := s.Do(b); err != nil {
			b.fail(s.Name, err)
		}
	}
	b.wait()
}

// fail ends init for what a step of it could not do.
func (b *box) fail(step string, err error) {
	report(b.control, failure(b.cfg, step, err), nil)
	os.Exit(1)
}

// failure turns a step's error into the message that names it.
func failure(cfg *wire.Config, step string, err error) *wire.Report {
	r := &wire.Report{Type: wire.TypeFailed, Step: step, Errno: uint32(unix.EIO)}
	switch e := err.(type) {
	case *sys.StartError:
		r.Errno = uint32(e.Errno)
		r.Step = step + ": " + e.Call
		if e.Call == "execve" {
			r.Type, r.Path = wire.TypeNotStarted, existing(cfg.Paths, e)
			if e.Errno == unix.EACCES && isDir(e.Path) {
				r.Errno = uint32(unix.EISDIR) // what execve means
			}
		}
	case *mount.Error:
		r.Errno, r.Step, r.Path = uint32(e.Errno), e.Op, e.Note
	case unix.Errno:
		r.Errno = uint32(e)
	default:
		r.Path = err.Error()
	}
	return r
}

func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// existing is the file that execve failed on, "" when none of the paths has
// one: ENOENT for a file that is there means that its loader or its #!
// interpreter is not.
func existing(paths []string, e *sys.StartError) string {
	if e.Errno != unix.ENOENT && e.Errno != unix.ENOTDIR {
		return e.Path
	}
	for _, p := range paths {
		if unix.Access(p, unix.F_OK) == nil {
			return p
		}
	}
	return ""
}

func report(control int, r *wire.Report, fds []int) {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	frame := wire.Frame(r.Type, r.Encode())
	if err := unix.Sendmsg(control, frame, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		os.Exit(1)
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
}
