package rootfs

import (
	"errors"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

func (p *planner) interpreters() {
	for _, b := range p.in.Interpret {
		b.Target = b.Path
		if p.below(b.Path, nil) {
			// The scratch would cover a virtual environment in /tmp.
			p.in.Mounts = append(slices.Clip(p.in.Mounts), b)
			continue
		}
		p.bind(b, wire.ReadOnly)
	}
}

// code copies the program's text. A copy, not a mount: it works from every
// file system, whoever may read the file on the host, and the file can change
// there without the run seeing half of it.
func (p *planner) code() {
	c := p.in.Code
	if c == nil {
		return
	}
	if p.in.Waits == wire.ProgramWaits {
		p.dir(CodeDir, 0o755)
		p.add(wire.Op{Kind: wire.OpText, Target: filepath.Join(CodeDir, c.Name), Mode: 0o444})
		return
	}
	mode := uint32(0o444)
	if c.Exec {
		mode = 0o555
	}
	p.copy(c, filepath.Join(CodeDir, c.Name), mode)
}

func (p *planner) copy(c *Code, target string, mode uint32) {
	op := wire.Op{Kind: wire.OpCopy, Target: target, Mode: mode, Size: uint64(c.Size), FD: wire.NoFD}
	p.items = append(p.items, Item{Op: op, Content: c.Content, File: c.File, CopyFrom: c.CopyFrom})
}

// files copies what the caller hands in into the scratch, where it is the
// program's own: its size and its inodes count, and it goes with the rest. Missing
// directories are made. Nothing of the program's is there yet, so that no link of
// its could lead a name elsewhere.
func (p *planner) files() {
	for i := range p.in.Files {
		f := &p.in.Files[i]
		mode := uint32(0o644)
		if f.Exec {
			mode = 0o755
		}
		p.copy(f, Work+"/"+f.Name, mode)
	}
}

// mountPoints makes the targets of the caller's mounts while the root can still
// be written. One that lies below another mount must exist there: it is never
// made in the caller's own directory.
func (p *planner) mountPoints() {
	sort.SliceStable(p.in.Mounts, func(i, j int) bool { return p.in.Mounts[i].Target < p.in.Mounts[j].Target })
	for i, m := range p.in.Mounts {
		if p.below(m.Target, p.in.Mounts[:i]) {
			continue
		}
		if m.Dir {
			p.dir(m.Target, 0o755)
		} else {
			p.add(wire.Op{Kind: wire.OpFile, Target: m.Target, Mode: 0o644})
		}
	}
	for _, name := range devices(p.in) {
		p.add(wire.Op{Kind: wire.OpFile, Target: "/dev/" + name, Mode: 0o644})
	}
	for _, l := range [...]Link{
		{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"},
	} {
		p.link(l.Target, l.Text)
	}
	if p.in.Pty {
		p.link("/dev/ptmx", "pts/ptmx")
	}
}

func (p *planner) below(target string, mounts []Bind) bool {
	for _, scratch := range []string{"/tmp", Work, Out, Home, "/dev/shm"} {
		if strings.HasPrefix(target, scratch+"/") {
			return true
		}
	}
	for _, m := range mounts {
		if target == m.Target || strings.HasPrefix(target, m.Target+"/") {
			return true
		}
	}
	return false
}

// deviceNames are the device nodes inside: none of them leads to hardware.
var deviceNames = []string{"null", "zero", "full", "random", "urandom"}

// devices adds the name of whatever terminal the session of who opens it has:
// the sandbox's own, and none where it has none.
func devices(in Input) []string {
	if in.Terminal {
		return append(deviceNames[:len(deviceNames):len(deviceNames)], "tty")
	}
	return deviceNames
}

// ptys is how many terminals a sandbox may have at once: the host has 4096 for
// all (pty(7)), and each costs it memory that no limit counts in full.
const ptys = "64"

// devices: a node takes data through a read-only mount as well, but no new
// time stamps, which would be those of the host's node.
func (p *planner) devices() error {
	for _, name := range devices(p.in) {
		if err := checkDevice("/dev/"+name, deviceNumbers[name]); err != nil {
			return err
		}
		p.add(wire.Op{Kind: wire.OpBind, Source: "/dev/" + name, Target: "/dev/" + name, Attr: wire.NoSuid | wire.ReadOnly})
	}
	if p.in.terminals() {
		p.terminals()
	}
	return nil
}

// terminals are an instance of the sandbox's own. The kernel echoes what is
// written to one in threads of its own, which are nobody's: 30 terminals kept
// 1.6 CPUs of the host busy from a sandbox with a tenth of one. So there are
// none without being asked for, and one alone for the program's own streams: its
// other side, by which something could be typed, is not inside.
func (p *planner) terminals() {
	most := ptys
	if !p.in.Pty {
		most = "1"
	}
	p.add(wire.Op{Kind: wire.OpDevpts, Target: "/dev/pts", Attr: wire.NoSuid | wire.NoExec, Data: []byte("newinstance,ptmxmode=0666,mode=0620,max=" + most)})
}

// deviceNumbers are major and minor of the nodes (devices.txt of the kernel),
// which are the same on every host.
var deviceNumbers = map[string][2]uint32{
	"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0},
}

// checkDevice refuses a host whose node is something else. A /dev/null that
// somebody has replaced by a file holds what the host's programs throw away, and
// one that is a disk is a way to it (CVE-2025-31133 and CVE-2026-88265 of others).
func checkDevice(path string, number [2]uint32) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFCHR || uint64(st.Rdev) != unix.Mkdev(number[0], number[1])) {
		err = errNoDevice
	}
	if err == nil {
		return nil
	}
	return refusal.Newf("%s of this host: %v", path, err).
		Hint("rm -f %s && mknod -m 666 %s c %d %d   # as root", path, path, number[0], number[1])
}

// errNoDevice is a file where the kernel's device node belongs.
var errNoDevice = errors.New("not the device that it should be")

func (p *planner) proc() {
	if !p.in.Proc {
		return
	}
	p.add(wire.Op{Kind: wire.OpProc, Target: "/proc", Attr: wire.NoSuid | wire.NoDev | wire.NoExec, Data: []byte("hidepid=ptraceable")})
	p.add(wire.Op{Kind: wire.OpInner, Source: "/proc/sys", Target: "/proc/sys", Attr: wire.ReadOnly})
	p.hideProc()
}

// scratch is one tmpfs, shown at each writable place: so one size limits their
// sum, and its pages count as the program's memory. It is mounted on /tmp, its
// parts are bound to their places, and last its "tmp" covers it.
func (p *planner) scratch() {
	attr := wire.NoSuid | wire.NoDev
	p.add(wire.Op{Kind: wire.OpTmpfs, Target: "/tmp", Attr: attr, Mode: 0o700, Size: uint64(p.in.Disk), Inodes: uint64(p.in.DiskInodes)})
	for _, part := range [...]struct {
		name, target string
		mode         uint32
	}{
		{"work", Work, 0o755}, {"home", p.home(), 0o755}, {"out", Out, 0o755}, {"shm", "/dev/shm", 0o1777}, {"tmp", "/tmp", 0o1777},
	} {
		if part.target == "" {
			continue
		}
		p.dir("/tmp/"+part.name, part.mode)
		p.add(wire.Op{Kind: wire.OpInner, Source: "/tmp/" + part.name, Target: part.target})
	}
	if p.below(p.in.Workdir, nil) {
		p.dir(p.in.Workdir, 0o755)
	}
	for _, m := range p.in.Mounts {
		if m.Dir && p.below(m.Target, nil) {
			p.dir(m.Target, 0o755)
		}
	}
	for _, m := range p.in.Mounts {
		if !m.Dir && p.below(m.Target, nil) {
			p.add(wire.Op{Kind: wire.OpFile, Target: m.Target, Mode: 0o644})
		}
	}
	p.files()
}

// home is where HOME is mounted: an image without /home keeps it in /work.
func (p *planner) home() string {
	if p.in.Image == "host" {
		return Home
	}
	return ""
}

func (p *planner) mounts() {
	for _, m := range p.in.Mounts {
		attr := wire.NoSuid | wire.NoDev
		if !m.Write {
			attr |= wire.ReadOnly
		}
		p.bind(m, attr)
	}
}

// cgroup shows the program its own group, so that runtimes size themselves.
func (p *planner) cgroup() {
	for _, v := range p.in.Cgroup {
		p.add(wire.Op{
			Kind: wire.OpBind, Source: v.HostPath, Target: filepath.Join("/sys/fs/cgroup", v.Name),
			Attr: wire.ReadOnly | wire.NoSuid | wire.NoDev | wire.NoExec,
		})
	}
}
