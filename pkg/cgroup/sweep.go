package cgroup

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTime bounds the whole of a sweep before a run, so that a group which
// cannot be removed does not hold up every later start for long.
const sweepTime = time.Second

var serial atomic.Int64

// NewID makes an ID that no other run of this host has: the creator's PID, its
// own count, and something of the clock's for the next process of that PID.
// Only groups with such a name are ever swept: what others call "sandglass-ci",
// to have it as --cgroup-parent for example, looks as abandoned as a dead
// creator's group does.
func NewID() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(serial.Add(1), 10) + "-" + strconv.FormatInt(time.Now().UnixNano()&0xffffff, 36)
}

// isRun says that a directory's name is prefix and an ID of NewID's.
func isRun(name string) bool {
	id, ok := strings.CutPrefix(name, prefix)
	f := strings.Split(id, "-")
	return ok && len(f) == 3 && made(f[0], "0123456789") && made(f[1], "0123456789") && made(f[2], "0123456789abcdefghijklmnopqrstuvwxyz")
}

// made says that s is one or more of the letters.
func made(s, letters string) bool { return s != "" && strings.Trim(s, letters) == "" }

// own are the names of this process's living groups. Without them a session with
// many sandboxes would try the locks of all of them at each start.
var own sync.Map

// Swept is what a sweep has found: directories, of which one run can have
// several on cgroup v1.
type Swept struct {
	Removed []string
	Live    []string // their creators live
}

// Sweep removes the groups of creators that were killed, below the parent that
// Create would use with the same options, and kills what still runs in them.
// A group whose creator lives is never touched: it holds the group's lock. With
// nothing to do it costs an open and a stat of each parent.
func Sweep(o Options) (Swept, error) {
	h, err := Find(o)
	if err != nil {
		return Swept{}, err
	}
	return h.Sweep(o)
}

// Sweep is the function of that name on a host that was looked at.
func (f *Tree) Sweep(o Options) (Swept, error) {
	if err := validateParent(o.Parent); err != nil {
		return Swept{}, err
	}
	s := &sweeper{tree: f.tree, live: map[string]bool{}, deadline: time.Now().Add(sweepTime)}
	for _, parent := range f.tree.parents(o.Parent) {
		for _, name := range subdirs(parent) {
			if isRun(name) {
				s.one(parent + "/" + name)
			}
		}
	}
	s.removeParent(o.Parent)
	return s.found, errors.Join(s.errs...)
}

const (
	everywhereTime  = time.Minute
	everywhereDepth = 32
)

// SweepEverywhere is Sweep for the whole host, wherever the killed creators ran
// and whatever their parent was, as far as the caller's rights go.
func SweepEverywhere(o Options) (Swept, error) {
	h, err := Find(o)
	if err != nil {
		return Swept{}, err
	}
	s := &sweeper{tree: h.tree, live: map[string]bool{}, deadline: time.Now().Add(everywhereTime)}
	mounts := h.tree.v1
	if h.tree.version == 2 {
		mounts = []mount{*h.tree.v2}
	}
	for _, m := range mounts {
		s.walk(m.point, everywhereDepth)
	}
	s.removeParent("")
	return s.found, errors.Join(s.errs...)
}

type sweeper struct {
	tree     *tree
	deadline time.Time
	live     map[string]bool // names: on v1 one creator has a group in each hierarchy
	found    Swept
	errs     []error
}

// walk sweeps a directory and those below it, to a depth. A run's own
// directories are not entered: there is nothing of another run's.
func (s *sweeper) walk(parent string, depth int) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // gone, or not ours to read, and then not ours to sweep
	}
	for _, e := range entries {
		path := parent + "/" + e.Name()
		switch {
		case !e.IsDir():
		case isRun(e.Name()):
			s.one(path)
		case depth > 0 && time.Now().Before(s.deadline):
			s.walk(path, depth-1)
		}
	}
}

// one removes one group if its creator is dead. Each v1 directory has a lock of
// its own, so a half-made or half-removed set is swept as well.
func (s *sweeper) one(path string) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if _, ours := own.Load(name); ours || s.live[name] {
		s.found.Live = append(s.found.Live, path)
		return
	}
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return // gone, or another user's
	}
	d := dir{path: path, fd: fd, tasks: -1}
	defer d.close()
	switch err := lock(d); err {
	case nil:
	case unix.EWOULDBLOCK: // a living creator's, or another sweeper has it
		// Who has lost one group is dead, and it is another sweeper.
		gone := func(p string) bool { return strings.HasSuffix(p, "/"+name) }
		s.live[name] = !slices.ContainsFunc(s.found.Removed, gone)
		s.found.Live = append(s.found.Live, path)
		return
	default:
		return // gone
	}
	if s.tree.version == 2 {
		err = removeV2(d, s.deadline)
	} else {
		if exists(path + "/pids.max") {
			writeAt(d.fd, "pids.max", "0") // as in stopForks
		}
		err = removeV1(d, s.deadline)
	}
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	s.found.Removed = append(s.found.Removed, path)
}

// removeParent removes root's own parent of v2 when the last group in it was
// swept: there is no Close that would.
func (s *sweeper) removeParent(override string) {
	if s.tree.version != 2 || len(s.found.Removed) == 0 {
		return
	}
	if p, c := s.tree.planV2(override); c == nil && p.ours {
		unix.Rmdir(p.path) // EBUSY while others use it
	}
}

// parents are the existing directories below which groups would be made.
func (t *tree) parents(override string) []string {
	if t.version == 2 {
		if p, c := t.planV2(override); c == nil {
			return []string{p.path}
		}
		return nil
	}
	var list []string
	for _, ctrl := range v1Names {
		p, c := t.parentV1(ctrl, override)
		if c == nil && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
