// Package rootfs plans what the sandbox's root is made of: the host view or a
// directory, the synthetic /etc, devices, /proc, the scratch and the caller's
// mounts. It is planning only: it looks at the host to see what is there and
// returns an ordered list; pkg/mount carries it out inside.
package rootfs

import (
	"os"

	"sandglass/pkg/wire"
)

// Item is one operation and how its source is opened.
type Item struct {
	wire.Op
	// Open asks the supervisor to clone the mount at Op.Source itself when it
	// is root: init, with its unprivileged id, may not reach it by path.
	Open bool
	// IDMap asks that files of the source's owner belong to the program's user
	// inside. Only a root caller can have it.
	IDMap bool
	// Offered is not refused where its file system cannot map ids: nobody may need it.
	Offered bool
	// Content and File are the two sources of an OpCopy. CopyFrom is File's path
	// on the host, to be shown and not to be opened.
	Content  []byte
	File     *os.File
	CopyFrom string
}

// Source is a host path that was resolved and looked at.
type Source struct {
	Path     string // absolute, without links
	Dir      bool
	Dev, Ino uint64
}

// Bind is a host path to be mounted inside.
type Bind struct {
	Source
	Target string
	Write  bool
	IDMap  bool
	Open   bool

	Offered bool
}

// View is a host directory of the sandbox's own cgroup, shown read-only.
type View struct{ HostPath, Name string }

// Code is one file that is copied in: its bytes, or a file of the host's that was
// opened when it was judged.
type Code struct {
	Name     string
	Content  []byte
	File     *os.File
	CopyFrom string // File's path, to be shown
	Size     int64
	Exec     bool
}

// Input is everything the plan depends on.
type Input struct {
	Image      string // "host", a directory, or an imported image
	Imported   bool   // an image of the store, which has a place for each of ours in its /etc
	Root       Source // the directory, as it was judged
	UID, GID   uint32
	Interpret  []Bind // interpreters outside the host view, at their own paths
	Names      []Link // extra names for interpreters, e.g. python for python3
	Mounts     []Bind
	Code       *Code
	Files      []Code // put into Work, by relative names
	Disk       int64
	DiskInodes int64
	Proc       bool
	Pty        bool
	Network    bool // there is a list of hosts, and a resolver for it
	Terminal   bool // the program has one
	Size       Size
	Workdir    string
	Cgroup     []View

	// Waits is what a sandbox waits in that is made before its program is known.
	Waits wire.Waits
}

// terminals says that there is a devpts inside.
func (in *Input) terminals() bool { return in.Pty || in.Terminal }

// Link is a symbolic link to be made inside.
type Link struct{ Target, Text string }

// Places of the writable scratch. All lie on one tmpfs, so that one size
// limits their sum.
const (
	Work = "/work"
	Home = "/home/sandbox"
	Out  = "/out"
	// CodeDir holds the code to run, read-only.
	CodeDir = "/code"
	// NamesDir holds the extra names of interpreters; it is last in PATH.
	NamesDir = "/opt/sandglass/bin"
)

// Plan lists the operations in order: what is read-only first, then one
// recursive freeze, then what must stay writable or is a device.
func Plan(in Input) ([]Item, error) {
	p := &planner{in: in, items: make([]Item, 0, 192)} // what a default run has room in
	p.root()
	if err := p.view(); err != nil {
		return nil, err
	}
	p.skeleton()
	p.etc()
	p.facades()
	p.interpreters()
	p.code()
	p.mountPoints()
	p.add(wire.Op{Kind: wire.OpFreeze, Attr: wire.ReadOnly | wire.NoSuid | wire.NoDev})
	if err := p.devices(); err != nil {
		return nil, err
	}
	p.proc()
	p.scratch()
	p.mounts()
	p.cgroup()
	p.add(wire.Op{Kind: wire.OpPivot})
	return p.items, nil
}

// Writable lists where the program may write, for Landlock's second opinion:
// the scratch's places, the caller's writable mounts, the devices, and /proc,
// whose files each decide for themselves.
func Writable(in Input) []string {
	paths := []string{"/tmp", Work, Out, "/dev/shm", "/proc"}
	if in.terminals() {
		paths = append(paths, "/dev/pts")
	}
	if in.Image == "host" {
		paths = append(paths, Home)
	}
	for _, name := range devices(in) {
		paths = append(paths, "/dev/"+name)
	}
	for _, m := range in.Mounts {
		if m.Write {
			paths = append(paths, m.Target)
		}
	}
	return paths
}

// WritableNames are those, and the root's own links to them, by which programs
// name them as well.
func WritableNames(in Input) []string {
	return append(Writable(in), "/var/tmp", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr")
}

type planner struct {
	in       Input
	items    []Item
	etcIn    bool     // /etc comes from the image
	etcLinks []string // of nameFiles, those that are links there
	shown    []File   // of /proc, see facades
}

func (p *planner) add(op wire.Op) {
	if op.FD == 0 {
		op.FD = wire.NoFD
	}
	p.items = append(p.items, Item{Op: op})
}

func (p *planner) dir(path string, mode uint32) {
	p.add(wire.Op{Kind: wire.OpDir, Target: path, Mode: mode})
}

func (p *planner) link(target, text string) {
	p.add(wire.Op{Kind: wire.OpLink, Target: target, Source: text})
}

func (p *planner) file(path, content string) {
	p.add(wire.Op{Kind: wire.OpFile, Target: path, Mode: 0o644, Data: []byte(content)})
}

func (p *planner) bind(b Bind, attr wire.Attr) {
	op := wire.Op{
		Kind: wire.OpBind, Source: b.Path, Target: b.Target, FD: wire.NoFD,
		Attr: attr, Recursive: true, Dev: b.Dev, Ino: b.Ino,
	}
	p.items = append(p.items, Item{Op: op, Open: b.Open, IDMap: b.IDMap, Offered: b.Offered})
}
