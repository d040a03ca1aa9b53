package doctor

import (
	"os"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/launch"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// layers tries every layer but the limits.
func (e *examiner) layers() {
	list := trials()
	whole := e.try(&list[0], launch.Namespaces)
	if whole.What == "" {
		e.add(e.userLayer())
		e.ownID()
		for i := range list[1:] {
			t := &list[i+1]
			e.add(e.layer(t, e.try(t, launch.Namespaces)))
			if t.name == bindMounts && e.id.Mapped && e.id.UIDHelper == "" {
				e.add(e.idMapped())
			}
		}
		return
	}
	e.apart(list)
}

// apart finds out which namespace it is, where they cannot be had together: the
// user namespace alone, then each other with it. What is left needs all of them,
// or none.
func (e *examiner) apart(list []trial) {
	user := e.try(&list[0], unix.CLONE_NEWUSER)
	for i := range list {
		t := &list[i]
		switch {
		case i == 0 && user.What == "":
			e.add(e.userLayer())
			e.ownID()
		case i == 0:
			e.add(failed(t.name, user))
			if os.Geteuid() != 0 {
				e.add(Layer{Name: ownID, State: NotTried, Cause: "it needs the user namespace"})
			}
		case t.alone:
			e.add(e.layer(t, e.try(t, 0)))
		case user.What != "":
			e.add(Layer{Name: t.name, State: NotTried, Cause: "it needs the user namespace"})
		case t.flag != 0:
			e.add(e.layer(t, e.try(t, unix.CLONE_NEWUSER|t.flag)))
		default:
			e.add(Layer{Name: t.name, State: NotTried, Cause: "it needs all of the namespaces"})
		}
		switch {
		case t.name != bindMounts || !e.id.Mapped || e.id.UIDHelper != "":
		case user.What != "":
			e.add(Layer{Name: idMapped, State: NotTried, Cause: "it needs the user namespace"})
		default:
			e.add(e.idMapped())
		}
	}
}

func (e *examiner) try(t *trial, namespaces uintptr) launch.Tried {
	child := launch.Trial{Self: e.self, Identity: e.id, Namespaces: namespaces, Argv: []string{arg0, t.name}}
	return child.Run()
}

// failed is a layer that does not work, in a run's own words.
func failed(name string, r launch.Tried) Layer {
	return Layer{Name: name, State: DoesNot, Cause: strings.TrimPrefix(r.What, "init: "), Remedies: r.Hints}
}

func (e *examiner) layer(t *trial, r launch.Tried) Layer {
	switch {
	case r.What != "":
		return failed(t.name, r)
	case t.name == landlock:
		return landlockLayer(r.Landlock)
	case t.name == timeLayer && r.Unkillable != "":
		return Layer{Name: t.name, State: DoesNot, Cause: r.Unkillable, Remedies: r.KillHints}
	case t.name == timeLayer && !r.Killed:
		return Layer{Name: t.name, State: DoesNot, Cause: "a child that was killed through its pidfd ended in another way"}
	}
	return Layer{Name: t.name, State: Works}
}

// userLayer says whose the sandboxes are on the host.
func (e *examiner) userLayer() Layer {
	l := Layer{Name: userNS, State: Works}
	uid := os.Geteuid()
	switch {
	case e.id.Mapped:
		l.Detail = "each run has a host id of its own"
	case uid != 0:
		l.Detail = "the caller's own host id, " + strconv.Itoa(uid)
	case e.noID != nil:
		r := sandbox.NoHostID(e.noID)
		l.State, l.Cause, l.Remedies = DoesNot, r.What, r.Hints
	default:
		l.State = Less
		l.Cause = "root's sandboxes have root's own id on this host"
		if missing := causes.MissingCaps("SETUID", "SETGID", "SYS_ADMIN"); len(missing) > 0 {
			l.Cause += ": root lacks CAP_" + strings.Join(missing, ", CAP_")
		} else {
			l.Cause += ": the ids of sandboxes are not mapped in this user namespace"
		}
		l.Remedies = causes.AsNobody()
	}
	return l
}

// ownID says whether an ordinary user's sandboxes have ids of their own: the
// trials above had one where they can.
func (e *examiner) ownID() {
	switch {
	case os.Geteuid() == 0:
	case e.notOwn == nil:
		e.add(Layer{Name: ownID, State: Works, Detail: "by " + e.id.UIDHelper + ", where a run shows nothing that only the caller may read or write"})
	default:
		e.add(Layer{Name: ownID, State: Less, Cause: "two sandboxes and the caller have one owner on the host: " + e.notOwn.What, Remedies: e.notOwn.Hints})
	}
}

// The versions of Landlock that a run makes use of (pkg/boxinit).
const (
	landlockLeast = 2
	landlockFull  = 6
)

func landlockLayer(version int) Layer {
	l := Layer{Name: landlock, State: Less}
	kernel := sys.LandlockABI()
	switch {
	case version >= landlockFull:
		l.State, l.Detail = Works, "version "+strconv.Itoa(version)
	case version >= landlockLeast:
		l.Detail = "version " + strconv.Itoa(version)
		l.Cause = "no second opinion on signals and abstract sockets: these come with version 6 (Linux 6.12)"
	case kernel > 0:
		l.Cause = "version " + strconv.Itoa(kernel) + " refuses every move of a file to another directory, so it is not used: version 2 comes with Linux 5.19"
	default:
		l.Cause = "this kernel has no Landlock, or it was not switched on at boot: there is no second opinion on files, signals and sockets"
		l.Remedies = []string{"boot with lsm=landlock,$(cat /sys/kernel/security/lsm)   # where the kernel is built with it"}
	}
	return l
}

// idMapped tries a mount of the working directory for root's sandboxes, whose id
// would own nothing in it otherwise.
func (e *examiner) idMapped() Layer {
	l := Layer{Name: idMapped, State: Works}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	b := &launch.Box{Identity: e.id}
	defer b.Close()
	item := rootfs.Item{Open: true, IDMap: true, Op: wire.Op{Kind: wire.OpBind, Source: dir, Target: "/task", FD: wire.NoFD, Attr: wire.NoSuid | wire.NoDev}}
	if err := b.Realize([]rootfs.Item{item}); err != nil {
		l.State, l.Cause = DoesNot, err.Error()
		if strings.Contains(l.Cause, launch.CannotMapIDs) {
			l.State = Less // other directories may lie on another file system
		}
		if r, ok := err.(*refusal.Error); ok {
			l.Remedies = r.Hints
		}
	}
	return l
}
