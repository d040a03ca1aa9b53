package launch

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// ahead is what is read back while init is still at work, so that between the
// program's start and the acknowledgement, which init waits for, there is left what
// is about the program itself. It is of two kinds: what nobody can change but this
// process and the host's root, and the mounts, of which the kernel tells at the
// start whether any has changed since.
type ahead struct {
	filters  int               // of the supervisor itself, which the program inherits
	err      error             // why they are not known
	cgroup   map[string]string // the limits' files
	groupErr error             // what is wrong with a limit
	table    *table
}

// lookAhead reads the first kind. The groups' files are read-only inside, and belong
// to nobody who could write them; that the program is in the groups is looked at
// when it runs.
func (s *session) lookAhead() {
	a := &s.ahead
	own, err := statusOf("/proc/self/status")
	a.filters, _ = strconv.Atoi(own["Seccomp_filters"])
	a.err = err
	if g := s.box.Group; g != nil {
		a.groupErr, a.cgroup = g.Verify(), g.ReadBack()
	}
}

// table is the list of init's mounts, which are the program's, as it was read.
type table struct {
	fd   int
	text []byte
	held bool // it is as planned
}

// readTable reads the list and keeps it open. A nil one has changed.
func readTable(pid int) (*table, error) {
	fd, text, err := openProc(mountsOf(pid), tableSize)
	if err != nil {
		return nil, err
	}
	return &table{fd: fd, text: text}, nil
}

func mountsOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/mountinfo" }

// tableSize is about what a run's list takes.
const tableSize = 16 << 10

// changed says whether anything was mounted, unmounted or given other attributes in
// that namespace since the list was opened: the kernel counts these events, and tells
// each reader of the file (proc_pid_mountinfo(5)). What cannot be asked has changed.
func (t *table) changed() bool {
	if t == nil || t.fd < 0 {
		return true
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLPRI}}, 0)
		if err != unix.EINTR {
			return n != 0 || err != nil
		}
	}
}

func (t *table) close() {
	if t != nil && t.fd >= 0 {
		unix.Close(t.fd)
		t.fd = -1
	}
}

// rooted takes init's word that its root is made, and compares the mounts with the
// plan. It is no more than a good moment to look: where it never comes, or something
// is not as planned, all is looked at when the program runs.
func (s *session) rooted() bool {
	if s.ahead.table != nil || s.end.ReadBack.Status != nil {
		return false
	}
	t, err := readTable(s.pid)
	if err != nil {
		return true
	}
	rb := ReadBack{mounts: t.text, promised: s.promise()}
	t.held = rb.checkMounts() == nil
	s.ahead.table = t
	return true
}

func (s *session) promise() promise {
	b := s.box
	return promise{b.Identity, b.Config.Rlimits, b.Config.Mounts}
}

// mounts puts init's mounts into rb: those that were read and held, where nothing has
// changed since.
func (s *session) mounts(rb *ReadBack) (err error) {
	t := s.ahead.table
	defer t.close()
	if !t.changed() && t.held {
		rb.mounts, rb.mountsHeld = t.text, true
		return nil
	}
	rb.mounts, err = readProcOf(mountsOf(s.pid), tableSize)
	return err
}
