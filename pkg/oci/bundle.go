package oci

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/policy"

	"golang.org/x/sys/unix"
)

// Write makes a bundle in a new directory: config.json, and the root directory
// with what the format itself cannot hold (links, our /etc, mount points, the
// code). A directory that is there already is refused: it may hold anything.
func (b *Bundle) Write(dir string) error {
	resolved, err := hostpath.Walk(dir, b.plan.Spec.MayFollow)
	if err != nil {
		return refuse(dir, err)
	}
	root, err := b.create(resolved)
	if err != nil {
		return refuse(resolved, err)
	}
	defer root.Close()
	text, err := b.Config.JSON()
	if err != nil {
		return refuse(resolved, err)
	}
	// The environment is in it, and may hold what nobody else should read.
	if err := put(root, "config.json", 0o600, text, nil, 0); err != nil {
		return refuse(resolved, err)
	}
	for _, e := range append([]entry{{name: rootDir, dir: true, mode: 0o755}}, b.entries...) {
		if err := e.write(root); err != nil {
			return refuse(resolved, err)
		}
	}
	return nil
}

// create makes the directory below one that is held open, and keeps to what it
// made whatever becomes of the name.
func (b *Bundle) create(dir string) (*os.Root, error) {
	parent, name := hostpath.Split(dir)
	fd, err := hostpath.OpenDir(parent)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := b.outOfReach(fd, name, dir); err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(fd, name, 0o755); err != nil {
		return nil, err
	}
	own, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(own)
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(own))
	if err != nil {
		return nil, err
	}
	return root, root.Chmod(".", 0o711) // the runtime's unprivileged id enters it
}

// outOfReach: a program that can write to its own bundle says what the next start
// of it mounts, filters and runs, as the host's root.
func (b *Bundle) outOfReach(parent int, name, dir string) error {
	r := &hostpath.Reach{}
	for _, m := range b.plan.Input.Mounts {
		if m.Write {
			r.Add(m.Path, m.Dev, m.Ino, m.Dir)
		}
	}
	source, err := r.Holds(parent, name, dir)
	if err == nil && source != "" {
		return policy.InReach("--bundle", dir, source)
	}
	return err
}

func (e *entry) write(root *os.Root) error {
	name := path.Clean(e.name)
	switch {
	case e.dir:
		return mkdirAll(root, name, e.mode)
	case e.link != "":
		if err := mkdirAll(root, path.Dir(name), 0o755); err != nil {
			return err
		}
		return root.Symlink(e.link, name)
	}
	if err := mkdirAll(root, path.Dir(name), 0o755); err != nil {
		return err
	}
	return put(root, name, e.mode, e.data, e.from, e.size)
}

// mkdirAll is MkdirAll with modes that the caller's umask does not narrow.
func mkdirAll(root *os.Root, name string, mode os.FileMode) error {
	if st, err := root.Lstat(name); err == nil && st.IsDir() {
		return nil
	}
	if parent := path.Dir(name); parent != "." {
		if err := mkdirAll(root, parent, 0o755); err != nil {
			return err
		}
	}
	if err := root.Mkdir(name, mode.Perm()); err != nil {
		return err
	}
	return root.Chmod(name, mode.Perm())
}

func put(root *os.Root, name string, mode os.FileMode, data []byte, from *os.File, size int64) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if from != nil {
		_, err = io.Copy(f, io.NewSectionReader(from, 0, size))
	} else {
		_, err = f.Write(data)
	}
	return errors.Join(err, f.Chmod(mode), f.Close())
}

func refuse(dir string, err error) error {
	var link *hostpath.LinkError
	var at *fs.PathError
	switch {
	case errors.As(err, new(*refusal.Error)):
		return err
	case errors.As(err, &link):
		return refusal.Newf("--bundle: %s is a symbolic link, which a program could have made: name the place that it leads to", refusal.Word(link.Link)).
			Hint("readlink -f -- %s   # where it leads now", refusal.Shell(dir))
	case errors.Is(err, fs.ErrExist) && !errors.As(err, &at):
		return refusal.Newf("--bundle: %s is there already", refusal.Word(dir)).
			Hint("--bundle %s-2   # a directory that is made anew", refusal.Shell(dir))
	}
	return refusal.Newf("--bundle: %s: %v", refusal.Word(dir), err).
		Hint("--bundle names a directory that does not exist, in one that does")
}
