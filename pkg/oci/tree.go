package oci

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/wire"
)

// rootDir is the root's directory in a bundle.
const rootDir = "rootfs"

// procDir holds the files of the bundle that are mounted over those of /proc.
const procDir = "proc"

// entry is a file of the bundle.
type entry struct {
	name string // path in the bundle
	dir  bool
	link string // text of a symbolic link
	mode os.FileMode
	data []byte
	from *os.File // copied instead of data
	size int64
}

// tree turns the root's operations into mounts and files. What lies under a
// mount cannot be a file of the bundle: the runtime makes mount points there.
type tree struct {
	bundle *Bundle
	spec   *policy.Spec
	frozen bool
	size   []string          // options of the scratch
	parts  map[string]uint32 // modes of its places
	over   []string          // targets of mounts
	shown  map[string][]byte // files that cover those of /proc
}

// devSize is for a handful of device nodes.
const devSize = "size=64k"

func (t *tree) item(it *rootfs.Item) error {
	switch it.Kind {
	case wire.OpRoot:
	case wire.OpPivot:
		// A run shows its own groups' directories, by paths that are not known yet.
		t.add(entry{name: "/sys/fs/cgroup", dir: true, mode: 0o755})
		t.mount("/sys/fs/cgroup", "cgroup", "cgroup", options(wire.ReadOnly|wire.NoSuid|wire.NoDev|wire.NoExec)...)
	case wire.OpFreeze:
		t.frozen = true
		t.add(entry{name: "/dev", dir: true, mode: 0o755})
		t.mount("/dev", "tmpfs", "tmpfs", "nosuid", "noexec", "mode=755", devSize, "ro")
	case wire.OpDir:
		t.directory(it)
	case wire.OpFile, wire.OpCopy:
		t.file(it)
	case wire.OpLink:
		t.add(entry{name: it.Target, link: it.Source})
	case wire.OpBind:
		return t.bind(it)
	case wire.OpTmpfs:
		t.size = []string{"size=" + strconv.FormatUint(it.Size, 10), "nr_inodes=" + strconv.FormatUint(it.Inodes, 10)}
		t.parts = map[string]uint32{}
	case wire.OpInner:
		return t.inner(it)
	case wire.OpProc:
		t.mount(it.Target, "proc", "proc", append(options(it.Attr), string(it.Data))...)
	case wire.OpDevpts:
		t.mount(it.Target, "devpts", "devpts", append(options(it.Attr), strings.Split(string(it.Data), ",")...)...)
	case wire.OpMask:
		t.mask(it)
	case wire.OpRest:
		return t.rest(it)
	default:
		// An operation that is not translated would be a hole.
		return refusal.Newf("--oci: the operation %s has no translation", it.Kind)
	}
	return nil
}

func (t *tree) directory(it *rootfs.Item) {
	if t.parts != nil {
		t.parts[it.Target] = it.Mode
	}
	t.add(entry{name: it.Target, dir: true, mode: os.FileMode(it.Mode)})
}

func (t *tree) file(it *rootfs.Item) {
	if !t.frozen && strings.HasPrefix(it.Target, "/tmp/") {
		t.shown[it.Target] = it.Data
		return
	}
	e := entry{name: it.Target, mode: os.FileMode(it.Mode), data: it.Data}
	if it.Kind == wire.OpCopy {
		e.data, e.from, e.size = it.Content, it.File, int64(it.Size)
	}
	t.add(e)
}

// add keeps a file of the root, unless a mount will cover it.
func (t *tree) add(e entry) {
	for _, m := range append([]string{"/dev", "/proc", "/tmp"}, t.over...) {
		if strings.HasPrefix(e.name, m+"/") {
			return
		}
	}
	e.name = rootDir + e.name
	if slices.ContainsFunc(t.bundle.entries, func(o entry) bool { return o.name == e.name }) {
		return // a mount point that the plan makes itself
	}
	t.bundle.entries = append(t.bundle.entries, e)
}

func (t *tree) mount(target, kind, source string, opts ...string) *Mount {
	list := &t.bundle.Config.Mounts
	*list = append(*list, Mount{Destination: target, Type: kind, Source: source, Options: opts})
	t.over = append(t.over, target)
	return &(*list)[len(*list)-1]
}

// bind is a mount of the host's. The devices are left to the runtime: the
// specification has them in every container.
func (t *tree) bind(it *rootfs.Item) error {
	if path.Dir(it.Target) == "/dev" {
		return nil
	}
	uid, gid, dir, err := owner(it.Source)
	if err != nil {
		return err
	}
	attr := it.Attr
	if !t.frozen {
		attr |= wire.ReadOnly // the root's later freeze is recursive
	}
	opts := []string{"bind"}
	if it.Recursive {
		opts = []string{"rbind"}
	}
	opts = append(opts, options(attr|wire.NoSuid|wire.NoDev)...)
	if it.Recursive {
		for _, o := range options(attr | wire.NoSuid | wire.NoDev) {
			opts = append(opts, "r"+o)
		}
	}
	t.add(entry{name: it.Target, dir: dir, mode: map[bool]os.FileMode{true: 0o755, false: 0o644}[dir]})
	m := t.mount(it.Target, "bind", it.Source, opts...)
	if it.IDMap {
		m.Options = append(m.Options, "ridmap")
		m.UIDMappings = []IDMapping{{ContainerID: uid, HostID: HostID, Size: 1}}
		m.GIDMappings = []IDMapping{{ContainerID: gid, HostID: HostID, Size: 1}}
	}
	return nil
}

// inner is a second place of something in the root: a part of the scratch, or
// /proc/sys, read-only over itself.
func (t *tree) inner(it *rootfs.Item) error {
	if it.Source == it.Target && it.Attr == wire.ReadOnly {
		t.bundle.Config.Linux.ReadonlyPaths = append(t.bundle.Config.Linux.ReadonlyPaths, it.Target)
		return nil
	}
	mode, ok := t.parts[it.Source]
	if !ok {
		return refusal.Newf("--oci: the operation inner of %s has no translation", refusal.Word(it.Source))
	}
	opts := append(options(wire.NoSuid|wire.NoDev), "mode="+strconv.FormatUint(uint64(mode), 8))
	if mode&0o002 == 0 {
		// The runtime mounts as another user than the program's.
		opts = append(opts, "uid="+strconv.FormatUint(uint64(t.spec.User.UID), 10), "gid="+strconv.FormatUint(uint64(t.spec.User.GID), 10))
	}
	t.mount(it.Target, "tmpfs", "tmpfs", append(opts, t.size...)...)
	return nil
}

// overProc are the files of /proc that runtimes let a bundle mount something on:
// the rest of the facade is hidden instead.
var overProc = []string{"cpuinfo", "loadavg", "meminfo", "stat", "swaps"}

func (t *tree) mask(it *rootfs.Item) {
	name, data := path.Base(it.Target), t.shown[it.Source]
	if len(data) == 0 || !slices.Contains(overProc, name) {
		t.bundle.hide(it.Target)
		return
	}
	own := procDir + "/" + name
	t.bundle.entries = append(t.bundle.entries, entry{name: own, mode: 0o444, data: data})
	t.mount(it.Target, "bind", own, append([]string{"bind"}, options(wire.ReadOnly|wire.NoSuid|wire.NoDev|wire.NoExec)...)...)
}

// rest hides what init would find in a directory of /proc and the plan does not
// name. The format has no such rule, so the names are those of this host.
func (t *tree) rest(it *rootfs.Item) error {
	list, err := os.ReadDir(it.Target)
	if err != nil {
		return refusal.Newf("--oci: %v", err)
	}
	known := strings.Fields(string(it.Data))
	for _, d := range list {
		name := d.Name()
		st, err := d.Info()
		if err != nil || slices.Contains(known, name) || name[0] >= '0' && name[0] <= '9' {
			continue // gone, named, or a process
		}
		if st.Mode()&os.ModeSymlink == 0 && st.Mode()&0o007 != 0 {
			t.bundle.hide(it.Target + "/" + name)
		}
	}
	return nil
}

func (b *Bundle) hide(name string) {
	if l := &b.Config.Linux; !slices.Contains(l.MaskedPaths, name) {
		l.MaskedPaths = append(l.MaskedPaths, name)
	}
}

func options(a wire.Attr) []string {
	var list []string
	for _, o := range [...]struct {
		bit  wire.Attr
		name string
	}{{wire.ReadOnly, "ro"}, {wire.NoSuid, "nosuid"}, {wire.NoDev, "nodev"}, {wire.NoExec, "noexec"}} {
		if a&o.bit != 0 {
			list = append(list, o.name)
		}
	}
	return list
}
