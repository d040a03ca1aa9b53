package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// ReadBack is what the kernel says of the live program.
type ReadBack struct {
	Status     map[string]string // fields of /proc/PID/status
	Namespaces map[string]string // name to inode
	// Landlock is the version of the program's domain as init reports it, 0 for
	// none: the kernel shows it nowhere.
	Landlock int
	// Cgroup is what the limits' files said, by name. It is read at the start: the
	// kill of a run lifts one limit and closes another.
	Cgroup map[string]string

	promised promise
	limits   []byte // /proc/PID/limits
	mounts   []byte // /proc/PID/mountinfo of init, whose namespace is the program's
	// mountsHeld: they were compared with the plan before, and are what they were.
	mountsHeld bool
	filters    int   // of the supervisor itself, which the program inherits
	threads    int   // of init, for which the program's RLIMIT_NPROC has room
	exiting    bool  // nothing is left to look at
	groupErr   error // the limits' groups, or the program's being in them
}

// promise is what a run was planned to be.
type promise struct {
	identity Identity
	rlimits  []wire.Rlimit
	mounts   []wire.Op
}

// statusFields are the lines of /proc/PID/status that the layers promise.
var statusFields = []string{"NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Uid", "Gid", "Groups", "Threads"}

// mostThreads is what init's threads never reach: with one processor its runtime
// makes half a dozen.
const mostThreads = 32

// namespaces that must differ from the supervisor's own.
var namespaces = []string{"user", "mnt", "pid", "net", "ipc", "uts"}

// readBack looks at the program through the host's own /proc, by the PID that
// the kernel has for the pidfd. The program cannot be reaped before the
// supervisor acknowledges, so the PID cannot be another process's.
func (s *session) readBack(pidfd int) (ReadBack, error) {
	b := s.box
	rb := ReadBack{Namespaces: s.namespaces, promised: s.promise(), filters: s.ahead.filters}
	pid, err := pidOf(pidfd)
	if err != nil {
		return rb, err
	}
	proc := procOf(pid)
	if rb.Status, err = statusOf(proc + "/status"); err != nil {
		return rb, err
	}
	if s.ahead.err != nil {
		return rb, s.ahead.err
	}
	if rb.limits, err = readProc(proc + "/limits"); err != nil {
		return rb, err
	}
	init := procOf(s.pid)
	if err := s.mounts(&rb, proc); err != nil {
		return rb, err
	}
	inits, err := statusOf(init + "/status")
	if err != nil {
		return rb, err
	}
	rb.threads, _ = strconv.Atoi(inits["Threads"])
	if exiting(init) {
		rb.threads = mostThreads // they end one by one
	}
	// A program that the caller may not read hides its own from the caller.
	if inode, err := namespaceAt(unix.AT_FDCWD, proc+"/ns/cgroup"); err == nil && s.nsErr == nil {
		rb.Namespaces["cgroup"] = inode
	}
	if b.Group != nil {
		rb.groupErr = s.groups(proc)
		rb.Cgroup = s.ahead.cgroup
	}
	rb.exiting = exiting(proc)
	return rb, s.nsErr
}

// groups compares where the program is with the plan; of the limits that the kernel
// holds it is known, see ahead.
func (s *session) groups(proc string) error {
	text, err := readProc(proc + "/cgroup")
	if err == nil {
		err = s.box.Group.Holds(string(text))
	}
	// On v1 the kernel shows a process that ends in the top group.
	if err != nil && !exiting(proc) {
		return err
	}
	return s.ahead.groupErr
}

func statusOf(path string) (map[string]string, error) {
	text, err := readProc(path)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		for _, f := range statusFields {
			if string(key) == f {
				found[f] = string(bytes.TrimSpace(value))
			}
		}
	}
	return found, nil
}

// namespacesOf reads init's namespaces, which are the program's. They are the
// same from the clone on, so this is done while init is still at work.
func namespacesOf(pid int) (map[string]string, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/ns"
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(dir)
	found := map[string]string{}
	for _, ns := range namespaces {
		if found[ns], err = namespaceAt(dir, ns); err != nil {
			return nil, &os.PathError{Op: "readlink", Path: path + "/" + ns, Err: err}
		}
	}
	return found, nil
}

// namespaceAt reads one of these links, which are short.
func namespaceAt(dir int, name string) (string, error) {
	var buf [64]byte
	n, err := unix.Readlinkat(dir, name, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// maxProc bounds a file of /proc; the mounts of a sandbox are a few of them.
const maxProc = 16 << 20

// readProc reads a file of /proc at once. os.ReadFile would make three
// times as many calls, to find out whether it can be polled.
func readProc(path string) ([]byte, error) { return readProcOf(path, 2<<10) }

// readProcOf is readProc of a file of about that size.
func readProcOf(path string, size int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	buf, n := make([]byte, size), 0
	for {
		if n == len(buf) {
			if n >= maxProc {
				return nil, &os.PathError{Op: "read", Path: path, Err: unix.EFBIG}
			}
			buf = append(buf, make([]byte, n)...)
		}
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			return buf[:n], nil
		}
		n += m
	}
}

// pidOf reads the host's PID of a pidfd (Linux 5.4: fdinfo has it).
func pidOf(pidfd int) (int, error) {
	info, err := readProc("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(info) {
		if value, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil || pid <= 0 {
				break
			}
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no PID behind descriptor %d", pidfd)
}

func kill(pidfd int) { unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) }
