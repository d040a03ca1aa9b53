package rootfs

import (
	"slices"
	"strings"
)

// LaterSize is how much code a sandbox has room for that is made before its
// program is known.
const LaterSize = 4 << 20

// Later lists what is put into such a sandbox, made of had, when its program is
// known: what goes to the root itself, and what goes to the scratch.
func Later(had, in *Input) (code, files []Item) {
	p := &planner{in: *in}
	for _, l := range in.Names {
		if !slices.Contains(had.Names, l) {
			p.link(l.Target, l.Text)
		}
	}
	p.code()
	code, p.items = p.items, nil
	p.files()
	return code, p.items
}

// Extends says whether a sandbox that is made of in can become one made of o: the
// names of interpreters that the program mentions may come later.
func (in *Input) Extends(o *Input) bool {
	for _, l := range in.Names {
		if !slices.Contains(o.Names, l) {
			return false
		}
	}
	c := *o
	c.Names = in.Names
	return in.Same(&c)
}

// Same says whether two sandboxes are made of the same but for what comes later.
func (in *Input) Same(o *Input) bool {
	a, b := *in, *o
	for _, s := range [...]*Input{&a, &b} { // Plan sorts its own, see mountPoints
		s.Mounts = slices.SortedStableFunc(slices.Values(s.Mounts), func(x, y Bind) int { return strings.Compare(x.Target, y.Target) })
	}
	flat := a.Image == b.Image && a.Imported == b.Imported && a.Root == b.Root && a.UID == b.UID && a.GID == b.GID &&
		a.Disk == b.Disk && a.DiskInodes == b.DiskInodes && a.Proc == b.Proc && a.Pty == b.Pty && a.Network == b.Network &&
		a.Terminal == b.Terminal && a.Size == b.Size && a.Workdir == b.Workdir
	return flat && slices.Equal(a.Interpret, b.Interpret) && slices.Equal(a.Names, b.Names) && slices.Equal(a.Mounts, b.Mounts)
}
