package rootfs

import (
	"slices"
	"time"

	"sandglass/pkg/hostpath"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Host is what a sandbox is made of that the host decides and no Input says: what is
// found at names of its own (/usr, /etc, the top of an image), and what is mounted
// there and at the caller's sources, and how.
type Host struct {
	in   Input
	ops  []wire.Op
	dirs []stamp // of those whose names the ops are of

	sources []string
	mounts  string
	table   *hostpath.Table // in which mounts were these
}

// Look finds it. It belongs before anything of the host is mounted: what changes
// meanwhile is then a difference to every later look.
func (in *Input) Look() (*Host, error) {
	h := &Host{in: *in}
	var err error
	if h.table, err = hostpath.Mounts(); err != nil {
		return nil, err
	}
	if h.dirs, h.ops, err = in.found(); err != nil {
		return nil, err
	}
	for i := range h.ops {
		if o := &h.ops[i]; o.Kind == wire.OpBind {
			h.sources = append(h.sources, o.Source)
		}
	}
	for _, list := range [...][]Bind{in.Interpret, in.Mounts, {{Source: in.Root}}} {
		for _, b := range list {
			if b.Path != "" {
				h.sources = append(h.sources, b.Path)
			}
		}
	}
	h.mounts = h.table.About(h.sources)
	return h, nil
}

// Same says whether a sandbox made now would be made of the same. In the usual case
// that is one poll(2) and some stat(2).
func (h *Host) Same() bool { return h.sameMounts() && h.sameNames() }

func (h *Host) sameMounts() bool {
	now, err := hostpath.Mounts()
	if err != nil || now != h.table && h.mounts != now.About(h.sources) {
		return false
	}
	h.table = now
	return true
}

func (h *Host) sameNames() bool {
	return h.in.Image == "host" && slices.Equal(h.dirs, stamps(nameDirs)) || h.sameFound()
}

func (h *Host) sameFound() bool {
	dirs, ops, err := h.in.found()
	if err != nil || !slices.EqualFunc(h.ops, ops, sameOp) {
		return false
	}
	h.dirs = dirs
	return true
}

// found are the operations that depend on the host's names.
func (in *Input) found() (dirs []stamp, ops []wire.Op, err error) {
	if in.Image == "host" {
		dirs = stamps(nameDirs) // before they are looked into
	}
	p := &planner{in: *in}
	if err := p.view(); err != nil {
		return nil, nil, err
	}
	p.etc()
	for i := range p.items {
		ops = append(ops, p.items[i].Op)
	}
	return dirs, ops, nil
}

// sameOp: what has the inode of something that is mounted in a sandbox is that, for it
// keeps it. A link is its text.
func sameOp(a, b wire.Op) bool {
	return a.Kind == b.Kind && a.Source == b.Source && a.Target == b.Target && a.Dev == b.Dev && a.Ino == b.Ino &&
		a.Attr == b.Attr && a.Recursive == b.Recursive && a.Mode == b.Mode && slices.Equal(a.Data, b.Data)
}

// nameDirs are the directories in which the host's view looks for names.
var nameDirs = []string{"/", "/nix", "/gnu", "/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/pki/ca-trust"}

// stamp is a directory's state: the kernel sets its time of change when a name in it
// comes, goes, or is another file's.
type stamp struct {
	dev, ino  uint64
	sec, nsec int64
	unsettled time.Time
}

// settled is how long ago the last change of a directory must be for its time to say
// that there was none since: the kernel's times have steps of up to 10 ms.
const settled = time.Second

func stamps(dirs []string) []stamp {
	list := make([]stamp, len(dirs))
	now := time.Now()
	for i, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil {
			continue // none is made without a change of the one above
		}
		list[i] = stamp{dev: uint64(st.Dev), ino: st.Ino, sec: int64(st.Ctim.Sec), nsec: int64(st.Ctim.Nsec)}
		if now.Sub(time.Unix(list[i].sec, list[i].nsec)) < settled {
			list[i].unsettled = now // the same as no other
		}
	}
	return list
}
