package rootfs

import (
	"os"
	"path/filepath"
	"sort"

	"sandglass/internal/refusal"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// rootSlack is what the root tmpfs may hold beside the code: the synthetic
// files and the mount points.
const rootSlack = 4 << 20

func (p *planner) root() {
	size := uint64(rootSlack)
	if c := p.in.Code; c != nil {
		size += uint64(c.Size)
	}
	p.add(wire.Op{Kind: wire.OpRoot, Mode: 0o755, Size: size, Inodes: 16 << 10})
}

func (p *planner) view() error {
	if p.in.Image == "host" {
		return p.hostView()
	}
	return p.directoryView(p.in.Image)
}

// hostView shows the host's own system directories and nothing that holds its
// state: no /home, /root, /var, /run, /sys, /boot, /etc. On merged-/usr hosts
// /bin and friends are links and stay links; elsewhere they are directories.
func (p *planner) hostView() error {
	for _, name := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"} {
		if text, err := os.Readlink(name); err == nil {
			p.link(name, text)
			continue
		}
		src, err := Look(name)
		if err != nil || !src.Dir {
			continue
		}
		p.bind(Bind{Source: src, Target: name}, wire.ReadOnly)
	}
	return nil
}

// ours are the top-level names that are never taken from an image: they are
// sandglass's own, whatever the image has there (a link, a file, a device).
var ours = map[string]bool{
	"dev": true, "proc": true, "sys": true, "tmp": true, "work": true, "out": true, "code": true,
}

// maxTopLevel bounds the entries of an image's root directory.
const maxTopLevel = 256

// directoryView mounts each top-level entry of a directory into the root
// tmpfs, so that nothing has to exist in the image and nothing is made in it.
func (p *planner) directoryView(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return refusal.Newf("image %s: %v", dir, err.(*os.PathError).Err)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxTopLevel + 1)
	if err != nil && len(names) == 0 {
		return refusal.Newf("image %s: the directory is empty", dir).
			Hint("sandglass run host COMMAND   # the host's own /usr, read-only")
	}
	if len(names) > maxTopLevel {
		return refusal.Newf("image %s: more than %d entries at the top", dir, maxTopLevel)
	}
	sort.Strings(names)
	for _, name := range names {
		if !ours[name] {
			p.imageEntry(dir, name)
		}
	}
	return nil
}

func (p *planner) imageEntry(dir, name string) {
	path := filepath.Join(dir, name)
	target := "/" + name
	if text, err := os.Readlink(path); err == nil {
		if name != "etc" && name != "var" {
			p.link(target, text)
		}
		return
	}
	src, err := Look(path)
	if err != nil {
		return
	}
	switch name {
	case "etc":
		p.etcIn = src.Dir
	case "var", "home", "opt":
		// Partly ours; the image's own wins where it is a directory.
	}
	if src.Dir || isRegular(path) {
		// Read-only from the start: a mount point that an image lacks must not be
		// made in it, where it would stay on the host.
		p.bind(Bind{Source: src, Target: target, Open: true, IDMap: true}, wire.ReadOnly)
	}
}

func isRegular(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode().IsRegular()
}

// Look resolves nothing: path must be free of links. It records what stands
// there, so that what is mounted later can be compared with what was checked.
func Look(path string) (Source, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Source{}, err
	}
	return Source{
		Path: path,
		Dir:  st.Mode&unix.S_IFMT == unix.S_IFDIR,
		Dev:  uint64(st.Dev),
		Ino:  st.Ino,
	}, nil
}

// Pin looks at a path of the caller's that was resolved and judged. No part of
// it may be a link: one that was put there since would lead to a place that
// nobody judged. mode is the file's type and permissions.
func Pin(path string) (src Source, mode uint32, err error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	if err != nil {
		return Source{}, 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Source{}, 0, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return Source{}, 0, unix.ELOOP // O_PATH opens a link that is the last part
	}
	return Source{Path: path, Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, Dev: uint64(st.Dev), Ino: st.Ino}, st.Mode, nil
}

// skeleton is the rest of the tree: directories and links of our own.
func (p *planner) skeleton() {
	for _, d := range []string{"/dev/pts", "/dev/shm", "/proc", "/sys", "/tmp", Work, Out, CodeDir} {
		p.dir(d, 0o755)
	}
	if p.in.Image == "host" {
		p.dir(Home, 0o755)
		p.dir("/etc", 0o755)
		p.link("/var/tmp", "../tmp")
		p.link("/var/run", "../run")
		p.dir("/run", 0o755)
		p.dir(NamesDir, 0o755)
		for _, l := range p.in.Names {
			p.link(l.Target, l.Text)
		}
	}
	for _, v := range p.in.Cgroup {
		p.dir(filepath.Join("/sys/fs/cgroup", v.Name), 0o755)
	}
}
