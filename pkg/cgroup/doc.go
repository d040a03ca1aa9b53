// Package cgroup holds a run's limits with the kernel's control groups: on
// cgroup v2, on v1 and hybrid hosts, and with a refusal that names the cause
// and the remedy where neither can.
//
// Every run has groups named sandglass-<id>:
//
//	v2:  PARENT/sandglass-<id>/init   sandglass's own PID 1, cloned straight into it
//	     PARENT/sandglass-<id>/box    the program; every limit is here
//	v1:  PARENT/sandglass-<id>        in the memory, pids, cpu, cpuacct, blkio and
//	                                  cpuset hierarchies; only the program joins
//
// PID 1 is never in the limited group, so that neither its threads and memory
// count nor the out-of-memory killer can take it and its verdict with it.
//
// PARENT on v1 is the caller's own group in each hierarchy. On v2 it is
// /sandglass for root, made on demand and removed when empty; for everybody
// else, and for root inside a container, it is the caller's own group, which
// must be delegated and hold no process but the caller. Since a v2 group with
// controllers may hold no process, the caller moves itself to the leaf
// sandglass-supervisor there, and stays in it.
//
// The creator holds a flock on the run's directories for as long as it lives;
// Sweep removes the groups whose lock can be had, and no PID that may be
// another's by now is asked. The directories have mode
// 0711: flock needs only an open for reading, and with 0755 any user of the
// host, or the program through its view, could pose as a living creator.
package cgroup

import (
	"strings"
	"sync"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
)

// Names of the limits, as --allow-degraded and EnforcedBy use them.
const (
	Memory = "memory"
	CPU    = "cpu"
	Pids   = "pids"
	IO     = "io"
)

const (
	prefix         = "sandglass-"
	supervisorLeaf = "sandglass-supervisor" // never an ID, never swept
	defaultParent  = "/sandglass"           // of root on v2
	defaultRoot    = "/sys/fs/cgroup"
)

// Options say where the groups are made and what may be missing.
type Options struct {
	// ID makes the group's name: 1 to 64 letters, digits, '_' or '-', unique
	// among live runs. One of NewID's, or no sweep will find the group.
	ID string
	// Parent overrides the default parent: a clean absolute path below the
	// cgroup mount, e.g. /ci, that exists in every hierarchy that is needed.
	Parent string
	// HostUID is the host's id of the sandbox's PID 1. When it is not the
	// caller's own, the groups' cgroup.procs are given to it, because
	// CLONE_INTO_CGROUP asks for write permission on the target and on the
	// common ancestor. The files are never writable inside.
	HostUID int
	// Allow names the limits that may be missing: memory, cpu, pids, io.
	Allow map[string]bool

	// Root, ProcSelfCgroup and Mountinfo are for tests. The defaults are
	// /sys/fs/cgroup, /proc/self/cgroup and /proc/self/mountinfo.
	Root, ProcSelfCgroup, Mountinfo string
}

func (o Options) root() string {
	if o.Root == "" {
		return defaultRoot
	}
	return o.Root
}

// View is a directory to show read-only inside, so that runtimes size
// themselves. Name is "" on v2, the controller's name on v1.
type View struct{ HostPath, Name string }

// Group is one run's groups. Its methods may be called from several
// goroutines; after Close they fail with ErrClosed.
type Group struct {
	mu     sync.Mutex
	limits Limits
	opt    Options
	by     map[string]result.Enforcer
	lacks  []lack
	notes  []string

	v2           bool
	run          dir // v2: sandglass-<id>, locked
	init, box    dir // v2
	v1           []dir
	cpuAbove     bool   // v1: the tighter CPU limit of a group above holds
	parent       string // v2
	removeParent bool   // v2: the parent is the default one

	usage      int   // descriptor for CPUUsage, -1 until asked
	peak       int64 // v2 without memory.peak: highest current value seen
	killed     bool  // Kill was called: some values are no longer the limits
	closed     bool
	closeError error
}

// lack is a limit that this host cannot give.
type lack struct {
	limit string
	cause *cause
}

// Create makes the groups and sets the limits on them. A limit that this host
// cannot give is a *refusal.Error with the cause and the remedy, and nothing
// is left behind, unless Options.Allow names the limit: EnforcedBy then says
// none and Notes says why.
func Create(o Options, l Limits) (*Group, error) {
	h, err := Find(o)
	if err != nil {
		return nil, err
	}
	return h.Create(o, l)
}

// Tree is what this host mounts, looked at once for all that a run does.
type Tree struct{ tree *tree }

// Find looks at the host.
func Find(o Options) (*Tree, error) {
	t, err := findTree(o)
	if err != nil {
		return nil, err
	}
	return &Tree{t}, nil
}

// InitGroup says whether PID 1 is cloned into a group (v2), which must then be
// there before it.
func (f *Tree) InitGroup() bool { return f.tree.version == 2 }

// Create is the function of that name on a host that was looked at.
func (f *Tree) Create(o Options, l Limits) (*Group, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	t, err := f.tree, error(nil)
	// Not one of the limits that may be missing: who names a place means it.
	if c := t.named(o.Parent, l.asked()); c != nil {
		return nil, c.refuse()
	}
	g := &Group{limits: l, opt: o, by: map[string]result.Enforcer{}, usage: -1}
	g.run, g.init, g.box = noDir, noDir, noDir
	own.Store(prefix+o.ID, true)
	switch {
	case t.version == 1:
		err = g.createV1(t)
	case t.version == 2:
		g.v2 = true
		err = g.createV2(t)
	default:
		err = g.lackAll(noTree(o.root()))
	}
	if err == nil {
		err = g.refused()
	}
	if err != nil {
		g.Close() // its error would hide the cause, and nothing runs in there yet
		return nil, err
	}
	return g, nil
}

// lack records that a limit cannot be had; refused decides later, so that one
// message and one hint cover all of them.
func (g *Group) lack(limit string, c *cause) { g.lacks = append(g.lacks, lack{limit, c}) }

func (g *Group) lackAll(c *cause) error {
	for _, limit := range g.limits.asked() {
		g.lack(limit, c)
	}
	if len(g.lacks) == 0 {
		g.note("no cgroup: " + c.what)
	}
	return nil
}

func (g *Group) note(s string) { g.notes = append(g.notes, s) }

// refused is the refusal for the missing limits that Allow does not name, nil
// when there are none.
func (g *Group) refused() error {
	var missing []lack
	for _, l := range g.lacks {
		if g.opt.Allow[l.limit] {
			g.note(l.limit + " limit is not held: " + l.cause.what)
			continue
		}
		missing = append(missing, l)
	}
	if r := refuse(missing); r != nil {
		return r
	}
	return nil
}

// refuse is one refusal for all that is missing, nil for nothing: Create and the
// forecast say the same.
func refuse(lacks []lack) *refusal.Error {
	var missing, same []string
	var first *cause
	for _, l := range lacks {
		missing = append(missing, l.limit)
		if first == nil {
			first = l.cause
		}
		if l.cause.what == first.what {
			same = append(same, l.limit)
		}
	}
	if first == nil {
		return nil
	}
	noun := " limit: "
	if len(same) > 1 {
		noun = " limits: "
	}
	r := refusal.Newf("%s", strings.Join(same, ", ")+noun+first.what)
	for _, h := range first.hints {
		r.Hint("%s", h)
	}
	return r.Hint("--allow-degraded %s", strings.Join(missing, ","))
}

// InitFD is the directory that PID 1 is cloned into, -1 on v1 or without a group.
func (g *Group) InitFD() int { return g.init.fd }

// BoxFD is the directory that the program is cloned into, -1 on v1 or without a group.
func (g *Group) BoxFD() int { return g.box.fd }

// TaskFDs are the v1 tasks files, open for writing: the program joins by
// writing "0" to each while it has one thread. Close closes them. The program
// must not keep them.
func (g *Group) TaskFDs() []int {
	var fds []int
	for _, d := range g.v1 {
		if d.tasks >= 0 {
			fds = append(fds, d.tasks)
		}
	}
	return fds
}

// ViewPaths are the directories to show read-only at /sys/fs/cgroup inside.
func (g *Group) ViewPaths() []View {
	if g.box.fd >= 0 {
		return []View{{HostPath: g.box.path}}
	}
	var v []View
	for _, d := range g.v1 {
		for _, name := range d.names {
			v = append(v, View{HostPath: d.path, Name: name})
		}
	}
	return v
}

// EnforcedBy says what holds a limit; result.ByNone for one that was not
// asked for or may be missing and is.
func (g *Group) EnforcedBy(limit string) result.Enforcer {
	if by, ok := g.by[limit]; ok {
		return by
	}
	return result.ByNone
}

// Notes are sentences about what is weaker here than asked, for the result and
// for plan. Usually there are none.
func (g *Group) Notes() []string { return g.notes }
