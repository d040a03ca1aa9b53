package rootfs

import (
	"io"
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
	if p.in.Waits != wire.NoWait {
		size += LaterSize
	}
	p.add(wire.Op{Kind: wire.OpRoot, Mode: 0o755, Size: size, Inodes: 16 << 10})
}

func (p *planner) view() error {
	if p.in.Image == "host" {
		return p.hostView()
	}
	return p.directoryView(p.in.Root)
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
		src, err := look(name)
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
// The directory must still be the one that was judged, and its entries are
// looked at below it: an image's name may be a link that somebody turns.
func (p *planner) directoryView(root Source) error {
	fd, err := pinned(root)
	if err != nil {
		return refusal.Newf("image %s: %v", refusal.Word(root.Path), err)
	}
	f := os.NewFile(uintptr(fd), root.Path)
	defer f.Close()
	names, err := f.Readdirnames(maxTopLevel + 1)
	if err != nil && err != io.EOF {
		return refusal.Newf("image %s: %v", refusal.Word(root.Path), err)
	}
	if len(names) == 0 {
		return refusal.Newf("image %s: the directory is empty", refusal.Word(root.Path)).
			Hint("sandglass run host COMMAND   # the host's own /usr, read-only")
	}
	if len(names) > maxTopLevel {
		return refusal.Newf("image %s: more than %d entries at the top", refusal.Word(root.Path), maxTopLevel)
	}
	sort.Strings(names)
	for _, name := range names {
		if !ours[name] {
			p.imageEntry(fd, root.Path, name)
		}
	}
	return nil
}

// pinned opens the directory that was looked at before, for reading its names.
func pinned(root Source) (int, error) {
	how := &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, root.Path, how)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (uint64(st.Dev) != root.Dev || st.Ino != root.Ino) {
		err = unix.ESTALE
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (p *planner) imageEntry(dir int, root, name string) {
	target := "/" + name
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	isDir := false
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		if text := readlinkat(dir, name); text != "" && name != "etc" && name != "var" {
			p.link(target, text)
		}
		return
	case unix.S_IFDIR:
		isDir = true
	case unix.S_IFREG:
	default:
		return
	}
	if name == "etc" {
		if !isDir {
			return // a file there is none of ours to be mounted in
		}
		p.etcIn = true
		p.etcLinks = linksIn(dir, name, nameFiles)
	}
	src := Source{Path: filepath.Join(root, name), Dir: isDir, Dev: uint64(st.Dev), Ino: st.Ino}
	// Read-only from the start: a mount point that an image lacks must not be
	// made in it, where it would stay on the host.
	p.bind(Bind{Source: src, Target: target, Open: true, IDMap: true}, wire.ReadOnly)
}

// linksIn are those of the names in a directory that are links.
func linksIn(dir int, name string, names []string) (links []string) {
	for _, n := range names {
		var st unix.Stat_t
		if unix.Fstatat(dir, name+"/"+n, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			links = append(links, n)
		}
	}
	return links
}

// readlinkat is a link's text, "" when it cannot be had whole.
func readlinkat(dir int, name string) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil || n == len(buf) {
		return ""
	}
	return string(buf[:n])
}

// look is Pin for a name of the host's own, whose links are the host's.
func look(path string) (Source, error) {
	src, _, err := Pin(path)
	if err != unix.ELOOP {
		return src, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Source{}, err
	}
	src, _, err = Pin(real)
	return src, err
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
	for _, d := range []string{"/dev/shm", "/proc", "/sys", "/tmp", Work, Out, CodeDir} {
		p.dir(d, 0o755)
	}
	if p.in.terminals() {
		p.dir("/dev/pts", 0o755)
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
