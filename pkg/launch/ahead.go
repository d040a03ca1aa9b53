package launch

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// ahead is what is read back while init is still at work, so that between the
// program's start and the acknowledgement, which init waits for, there is left what
// is about the program itself. It is of two kinds: what nobody can change but this
// process and the host's root, and the mounts, whose list is read once more at the
// start and has to be the same text.
type ahead struct {
	filters  int               // of the supervisor itself, which the program inherits
	err      error             // why they are not known
	cgroup   map[string]string // the limits' files
	groupErr error             // what is wrong with a limit
	rooted   bool              // init has said that its root is made
	mounts   []byte            // its list then, where it is as planned
}

// lookAhead reads the first kind. A program that has an id of its own is not the
// owner of the groups' files. One that has the caller's may be: the mounts alone, which
// show them read-only, keep it from writing to them, and those are looked at when it
// runs, as is that it is in the groups.
func (s *session) lookAhead() {
	a := &s.ahead
	own, err := statusOf("/proc/self/status")
	a.filters, _ = strconv.Atoi(own["Seccomp_filters"])
	a.err = err
	if g := s.box.Group; g != nil {
		a.groupErr, a.cgroup = g.Verify(), g.ReadBack()
	}
}

// rooted takes init's word that its root is made, and compares the mounts with the
// plan. It is no more than a good moment to look: where it never comes, or something
// is not as planned, all is looked at when the program runs.
func (s *session) rooted() bool {
	if s.ahead.rooted || s.end.ReadBack.Status != nil {
		return false
	}
	s.ahead.rooted = true
	text, err := readProcOf(procOf(s.pid)+"/mountinfo", tableSize)
	rb := ReadBack{mounts: text, promised: s.promise()}
	if err == nil && rb.checkMounts() == nil {
		s.ahead.mounts = text
	}
	return true
}

// tableSize is about what the list of a run's mounts takes.
const tableSize = 16 << 10

func (s *session) promise() promise {
	b := s.box
	return promise{b.Identity, b.Config.Rlimits, b.Config.Mounts}
}

// mounts puts the program's mounts into rb, which are init's. A list that is to the
// letter what it was when it was compared with the plan needs no second comparison.
// The kernel can be asked whether a list has changed (proc_pid_mountinfo(5)), and does
// not tell of a file system whose own options have (fsconfig(2): a tmpfs that has
// become larger, a /proc that hides nobody any more).
func (s *session) mounts(rb *ReadBack, program string) (err error) {
	init := procOf(s.pid)
	if rb.mounts, err = readProcOf(init+"/mountinfo", tableSize); err != nil {
		return err
	}
	held := s.ahead.mounts
	rb.mountsHeld = held != nil && bytes.Equal(rb.mounts, held)
	return s.inOwnMounts(init, program)
}

// inOwnMounts: init and the program are in the mount namespace that init was cloned
// into. What was read is of no other one, and neither has another one since. A program
// that the caller may not read, or that ends, hides its own.
func (s *session) inOwnMounts(init, program string) error {
	if s.nsErr != nil {
		return s.nsErr
	}
	inode, err := namespaceAt(unix.AT_FDCWD, init+"/ns/mnt")
	if err != nil {
		return fmt.Errorf("the mount namespace of init is not known: %w", err)
	}
	if own, err := namespaceAt(unix.AT_FDCWD, program+"/ns/mnt"); inode == s.namespaces["mnt"] && err == nil {
		inode = own
	}
	if inode != s.namespaces["mnt"] {
		return errors.New("the mount namespace is another one than init was cloned into")
	}
	return nil
}
