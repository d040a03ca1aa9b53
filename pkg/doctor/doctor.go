// Package doctor finds out what this host gives a sandbox, by trying each layer
// in a throwaway child with the code of a run, and says of each whether it
// works, why not, and what to paste. It never decides by a version number or a
// setting: those only name the cause of what has failed (pkg/doctor/causes, the
// texts that a run's own refusals are made of).
//
// The layers are tried each by itself, so that one that fails does not hide the
// next; whether a run starts is found out by starting one.
package doctor

import (
	"context"
	"os"
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/hostid"
	"sandglass/pkg/launch"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// Schema is the version of Report's JSON form, docs/doctor.schema.json.
const Schema = 1

// State is what a layer does on this host.
type State string

// The states.
const (
	Works    State = "works"
	Less     State = "works with less"
	DoesNot  State = "does not"
	NotTried State = "not tried" // what it needs does not work
)

// Report is what was found.
type Report struct {
	Schema int     `json:"schema"`
	Host   Host    `json:"host"`
	Run    Run     `json:"run"`
	Layers []Layer `json:"layers"`
}

// Host is where it was found.
type Host struct {
	Kernel  string   `json:"kernel"`
	Machine string   `json:"machine"`
	UID     int      `json:"uid"`
	Cgroup  string   `json:"cgroup"` // v2, hybrid, v1, none
	Kind    []string `json:"kind"`   // what the remedies depend on
}

// Run is whether a run with no flags starts here: works; works with less, with
// the flags named; or does not.
type Run struct {
	State State    `json:"state"`
	Flags string   `json:"flags,omitempty"` // those that a run needs here, though they may not be enough
	Error string   `json:"error,omitempty"` // of a run with no flags, as it prints it; with Flags where these do not help
	Hints []string `json:"hints,omitempty"`
}

// Layer is one layer of the sandbox.
type Layer struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Detail is what it is made of here: a version, a place.
	Detail string `json:"detail,omitempty"`
	// Cause says why it does not work, or works with less; Remedies are lines to
	// paste.
	Cause    string   `json:"cause,omitempty"`
	Remedies []string `json:"remedies,omitempty"`
	// Flag lets a run go on without it, by weaker means.
	Flag string `json:"flag,omitempty"`
}

// Examine tries everything. The error is a *refusal.Error: nothing was tried.
func Examine(ctx context.Context) (*Report, error) {
	e := &examiner{report: &Report{Schema: Schema}, self: "/proc/self/exe"}
	if err := e.host(); err != nil {
		return nil, err
	}
	defer e.release()
	// The limits before any child: on cgroup v2 an ordinary user's own group must
	// hold this process alone when it is prepared for groups of its own.
	limits := e.limits()
	e.run(ctx, limits)
	if ctx.Err() != nil {
		return nil, refusal.Newf("the examination was interrupted")
	}
	e.layers()
	e.report.Layers = append(e.report.Layers, limits...)
	return e.report, nil
}

// examiner is one examination in progress.
type examiner struct {
	report *Report
	self   string
	id     launch.Identity
	held   *hostid.ID
	noID   error          // why root could hold no id
	notOwn *refusal.Error // why an ordinary user's runs have the caller's
}

func (e *examiner) host() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return refusal.Newf("uname: %v", err)
	}
	tree := "none"
	if h, err := cgroup.Describe(cgroup.Options{}); err == nil {
		tree = h.Tree
	}
	kind := causes.Kind()
	if kind == nil {
		kind = []string{}
	}
	e.report.Host = Host{Kernel: unix.ByteSliceToString(u.Release[:]), Machine: runtime.GOARCH, UID: os.Geteuid(), Cgroup: tree, Kind: kind}
	inside := policy.Default().User
	e.id = launch.Identity{HostUID: os.Geteuid(), HostGID: os.Getegid(), InsideUID: int(inside.UID), InsideGID: int(inside.GID)}
	switch {
	case hostid.Available():
		e.held, e.noID = hostid.Take(os.Getpid())
	case os.Geteuid() != 0:
		e.subordinate()
	}
	if e.held != nil {
		e.id.HostUID, e.id.HostGID, e.id.Mapped = e.held.N, e.held.GID, true
	}
	return nil
}

// subordinate takes an id as an ordinary user's run does. One that is asked
// nothing of that it could not show has it.
func (e *examiner) subordinate() {
	s := sandbox.Default()
	ranges, why := sandbox.OwnIDs(&s)
	if why == nil {
		var err error
		if e.held, err = ranges.Take(); err != nil {
			why = refusal.Newf("%v", err)
		} else {
			e.id.UIDHelper, e.id.GIDHelper = ranges.UIDHelper, ranges.GIDHelper
		}
	}
	e.notOwn = why
}

func (e *examiner) release() {
	if e.held != nil {
		e.held.Release()
	}
}

func (e *examiner) add(l Layer) { e.report.Layers = append(e.report.Layers, l) }

// Starts says whether a run with no flags starts on this host.
func (r *Report) Starts() bool { return r.Run.State == Works }

// degraded are the limits that a run must allow to be held by less.
func degraded(limits []Layer) []string {
	var list []string
	for _, l := range limits {
		if l.Flag != "" && l.Name != limitLayer(cgroup.IO) { // a default run asks for none of io
			list = append(list, strings.TrimSuffix(l.Name, " limit"))
		}
	}
	return list
}
