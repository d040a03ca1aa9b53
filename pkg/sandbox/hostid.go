package sandbox

import (
	"errors"
	"os"
	"sync/atomic"

	"sandglass/internal/refusal"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/hostid"
	"sandglass/pkg/launch"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// NoHostID is the refusal of a root caller's run for which there is no id.
func NoHostID(err error) *refusal.Error {
	r := refusal.Newf("no host id for the sandbox: %v", err)
	if errors.Is(err, unix.EROFS) {
		r.Hints = causes.ReadOnlyLocks()
		return r
	}
	return r.Hint("ls -ld %s   # must be root's, mode 0700", hostid.Dir)
}

// serial tells the runs of one process apart.
var serial atomic.Int64

// callers is the identity of a sandbox that has none of its own.
func callers(s *Spec) launch.Identity {
	return launch.Identity{HostUID: os.Geteuid(), HostGID: os.Getegid(), InsideUID: int(s.User.UID), InsideGID: int(s.User.GID)}
}

// identity decides whose the sandbox is on the host, and holds an id for it.
func (r *runner) identity() error {
	id := callers(r.spec)
	r.box = &launch.Box{Identity: id}
	own, err := hostid.Look()
	if err != nil {
		return NoHostID(err)
	}
	if !own {
		return r.subordinate()
	}
	if r.spec.HostID == policy.HostIDCaller {
		return asRoot()
	}
	held, err := hostid.Take(os.Getpid() + int(serial.Add(1)))
	if err != nil {
		return NoHostID(err)
	}
	r.id = held
	id.HostUID, id.HostGID, id.Mapped = held.N, held.GID, true
	r.box.Identity = id
	return nil
}

// asRoot is the refusal of root's own id for a program that a model wrote.
func asRoot() *refusal.Error {
	return refusal.Newf("--host-id caller: root's own id would be the program's on the host").Hint("--host-id own")
}

// subordinate gives an ordinary user's sandbox an id of the user's range, where
// that is asked for or can be.
func (r *runner) subordinate() error {
	if r.spec.HostID == policy.HostIDCaller {
		r.why = "--host-id caller"
		return nil
	}
	ranges, why := ownIDs(r.spec, r.self)
	if why != nil {
		return r.notOwn(why)
	}
	held, err := ranges.Take()
	if err != nil {
		return r.notOwn(refusal.Newf("%v", err).Hint("sandglass doctor"))
	}
	r.id = held
	id := &r.box.Identity
	id.HostUID, id.HostGID, id.Mapped = held.N, held.GID, true
	id.UIDHelper, id.GIDHelper = ranges.UIDHelper, ranges.GIDHelper
	return nil
}

// notOwn refuses where an id of its own was asked for, and otherwise notes why
// the run has the caller's.
func (r *runner) notOwn(why *refusal.Error) error {
	if r.spec.HostID == policy.HostIDOwn {
		e := refusal.Newf("--host-id own: %s", why.What)
		e.Hints = append(why.Hints, "--host-id auto   # the caller's id where the sandbox cannot have one of its own")
		return e
	}
	r.why = why.What
	return nil
}

// ownIDs says what an ordinary user's sandbox of this Spec can have, as far as
// that is known without a look at what it is made of.
func ownIDs(s *Spec, self string) (*hostid.Ranges, *refusal.Error) {
	if os.Geteuid() == 0 {
		return nil, refusal.Newf("root may not map ids in this user namespace")
	}
	if policy.Imported(s.Image) {
		// And no mode is changed for it: the store is nobody else's to read.
		return nil, refusal.Newf("the store of images is for its owner alone to read, and an image's files are its owner's")
	}
	for _, m := range s.Mounts {
		if m.Write {
			// And they would be the next sandbox's that gets this id.
			return nil, refusal.Newf("files in the writable mount at %s would not be the caller's", refusal.Word(m.Target)).
				Hint("--out DIR   # brings the program's files back as the caller's own")
		}
	}
	ranges, why := hostid.LookUser()
	if why != nil {
		return nil, why
	}
	// A program that nobody else may read would also keep its own owner from the
	// process that runs it.
	if why := closedTo(self, unix.S_IROTH|unix.S_IXOTH); why != "" {
		return nil, refusal.Newf("the sandglass binary is %s", why).Hint("chmod a+rx %s   # and the directories on the way", refusal.Shell(executable(self)))
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/fdinfo", &st); err != nil || st.Mode&unix.S_IROTH == 0 {
		return nil, refusal.Newf("this kernel hides the descriptors of another id from the owner of its namespace: that changed in Linux 5.14")
	}
	return ranges, nil
}

// OwnIDs says what ids the sandboxes of an ordinary user have for themselves, for
// a Spec that names nothing which such an id could not read, or why they have
// none.
func OwnIDs(s *Spec) (*hostid.Ranges, *refusal.Error) { return ownIDs(s, "/proc/self/exe") }

func executable(self string) string {
	if path, err := os.Executable(); err == nil && self == "/proc/self/exe" {
		return path
	}
	return self
}

// fits looks at what the root is made of, now that it is known. An id of its own
// that could not read some of it is given back, and init started again.
func (r *runner) fits() error {
	if r.box.Identity.UIDHelper == "" {
		return nil
	}
	why := r.misfit()
	if why == nil {
		return nil
	}
	if err := r.notOwn(why); err != nil {
		return err
	}
	r.init.Cancel()
	r.init = nil
	r.id.Release()
	r.id = nil
	r.box.Identity = callers(r.spec)
	return r.boot()
}

func (r *runner) misfit() *refusal.Error {
	if len(r.group.TaskFDs()) > 0 {
		return refusal.Newf("cgroup v1 lets an ordinary user move processes of no other id into a group")
	}
	return closedItem(r.items)
}

// closedItem is why a sandbox with an id of its own could not read one of the
// mounts' sources, nil for none.
func closedItem(items []rootfs.Item) *refusal.Error {
	for i := range items {
		it := &items[i]
		if it.Kind != wire.OpBind {
			continue
		}
		if why := closedTo(it.Source, unix.S_IROTH); why != "" {
			return refusal.Newf("%s is %s", refusal.Word(it.Source), why).
				Hint("chmod a+rX %s   # and the directories on the way", refusal.Shell(it.Source))
		}
	}
	return nil
}

// hostIdentity is what the result says.
func (r *runner) hostIdentity() *result.HostID {
	id := &r.box.Identity
	return &result.HostID{UID: id.HostUID, GID: id.HostGID, Own: id.Mapped, Why: r.why}
}
