package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReadBack is what the kernel says of the live program.
type ReadBack struct {
	Status     map[string]string // fields of /proc/PID/status
	Namespaces map[string]string // name to inode, of init
	// Landlock is the version of the program's domain as init reports it, 0 for
	// none: the kernel shows it nowhere.
	Landlock int
}

// statusFields are the lines of /proc/PID/status that the layers promise.
var statusFields = []string{"NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Uid", "Gid", "Groups"}

// namespaces that must differ from the supervisor's own.
var namespaces = []string{"user", "mnt", "pid", "net", "ipc", "uts"}

// readBack looks at the program through the host's own /proc, by the PID that
// the kernel has for the pidfd. The program cannot be reaped before the
// supervisor acknowledges, so the PID cannot be another process's.
func (s *session) readBack(pidfd int) (ReadBack, error) {
	rb := ReadBack{Status: map[string]string{}, Namespaces: s.namespaces}
	pid, err := pidOf(pidfd)
	if err != nil {
		return rb, err
	}
	status, err := readProc("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return rb, err
	}
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		for _, f := range statusFields {
			if string(key) == f {
				rb.Status[f] = string(bytes.TrimSpace(value))
			}
		}
	}
	return rb, s.nsErr
}

// namespacesOf reads init's namespaces, which are the program's. They are the
// same from the clone on, so this is done while init is still at work.
func namespacesOf(pid int) (map[string]string, error) {
	found := map[string]string{}
	for _, ns := range namespaces {
		inode, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/" + ns)
		if err != nil {
			return nil, err
		}
		found[ns] = inode
	}
	return found, nil
}

// readProc reads a small file of /proc at once. os.ReadFile would make three
// times as many calls, to find out whether it can be polled.
func readProc(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	buf, n := make([]byte, 8<<10), 0
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], nil
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

// seccompDead is the mode of a thread that its filter has killed: a program
// whose first call is a foreign one can get there before the read-back, and
// must not be able to make its own end look like a failure of ours.
const seccompDead = "3"

// Check compares what was read with what every run promises.
func (rb *ReadBack) Check() error {
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		want[set] = "0000000000000000"
	}
	for field, value := range want {
		got := rb.Status[field]
		if field == "Seccomp" && got == seccompDead {
			continue
		}
		if got != value {
			return fmt.Errorf("%s of the program is %q, not %q", field, got, value)
		}
	}
	for ns, inode := range rb.Namespaces {
		own, err := os.Readlink("/proc/self/ns/" + ns)
		if err == nil && own == inode {
			return fmt.Errorf("the %s namespace is the host's own", ns)
		}
	}
	return nil
}

func kill(pidfd int) { unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) }
