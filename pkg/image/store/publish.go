package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"
	"sandglass/pkg/image/unpack"

	"golang.org/x/sys/unix"
)

// Free refuses a name that means another image already. id is the one that it is
// to mean, "" when that is not known yet.
func Free(s *image.Store, name, id string) error {
	old, err := s.Resolve(name)
	if errors.Is(err, image.ErrNone) || err == nil && old == id {
		return nil
	}
	if err != nil {
		return err
	}
	return refusal.Newf("the name %s is taken, by %s", refusal.Word(name), old).
		Hint("--name %s-2", refusal.Shell(strings.ReplaceAll(name, ":", "-"))).
		Hint("--force   # the name then means the new image")
}

// Publish makes an image of what was unpacked, under a name.
func (w *Work) Publish(u *unpack.Unpacked, name string, force bool) (string, error) {
	if err := unix.Mkdirat(w.dir, "image", 0o700); err != nil {
		return "", failed(w.store, "image", err)
	}
	dir, err := hostpath.DirBeneath(w.dir, "image")
	if err != nil {
		return "", failed(w.store, "image", err)
	}
	defer unix.Close(dir)
	id, err := describe(dir, u)
	if err != nil {
		return "", failed(w.store, image.TreeFile, err)
	}
	fresh, harmed := examine(w.store, id)
	if fresh {
		if err := w.directory(dir, image.RootDir, "", u.Tree.Root); err != nil {
			return "", w.full(err)
		}
	}
	ours, err := w.appear(id, name, force, fresh, harmed)
	if err == nil && ours {
		err = w.share(u.Tree)
	}
	return id, err
}

// describe writes the list of files and image.json, whose digest is the image's.
func describe(dir int, u *unpack.Unpacked) (string, error) {
	h := sha256.New()
	if err := create(dir, image.TreeFile, func(w io.Writer) error { return u.Tree.Write(io.MultiWriter(w, h)) }); err != nil {
		return "", err
	}
	u.Meta.Tree = image.DigestPrefix + hex.EncodeToString(h.Sum(nil))
	if u.Manifest != nil {
		if err := create(dir, image.ManifestFile, func(w io.Writer) error { _, err := w.Write(u.Manifest); return err }); err != nil {
			return "", err
		}
		u.Meta.Manifest = image.Digest(u.Manifest)
	}
	text, err := json.MarshalIndent(&u.Meta, "", "  ")
	if err != nil {
		return "", err
	}
	text = append(text, '\n')
	if len(text) > image.MaxMeta {
		return "", refusal.Newf("the settings and lists are %d bytes, more than %d", len(text), image.MaxMeta)
	}
	err = create(dir, image.MetaFile, func(w io.Writer) error { _, err := w.Write(text); return err })
	return image.Digest(text), err
}

// create makes a file of our own.
func create(dir int, name string, write func(io.Writer) error) error {
	fd, err := hostpath.Beneath(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// directory makes one directory of the image, from nothing: mkdir fails where
// something is, so no name of the archive's can meet a link or another's file.
func (w *Work) directory(in int, name, path string, n *tree.Node) error {
	err := w.spend(0, int64(len(n.Names())))
	if err == nil {
		err = unix.Mkdirat(in, name, 0o700)
	}
	if err != nil {
		return at(path, err)
	}
	fd, err := hostpath.DirBeneath(in, name)
	if err != nil {
		return at(path, err)
	}
	defer unix.Close(fd)
	for _, name := range n.Names() {
		if err := w.entry(fd, name, path+"/"+name, n.Child(name)); err != nil {
			return err
		}
	}
	// The permission to write was needed until now.
	if err := unix.Fchmod(fd, n.Disk()); err != nil {
		return at(path, err)
	}
	return at(path, setTime(in, name, n.MTime))
}

func (w *Work) entry(dir int, name, path string, n *tree.Node) error {
	switch n.Kind {
	case tree.Dir:
		return w.directory(dir, name, path, n)
	case tree.Link:
		if err := unix.Symlinkat(n.Target, dir, name); err != nil {
			return at(path, err)
		}
		return at(path, setTime(dir, name, n.MTime))
	}
	err := unix.Linkat(w.blobs, n.Key(), dir, name, 0)
	if err == unix.EMLINK || err == unix.EPERM || err == unix.EOPNOTSUPP {
		err = w.copy(dir, name, n)
	}
	return at(path, err)
}

// copy is a link's place where a file has as many names as its file system
// allows, or may have one only.
func (w *Work) copy(dir int, name string, n *tree.Node) error {
	from, err := hostpath.Beneath(w.blobs, n.Key(), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(from), name)
	defer f.Close()
	_, _, err = write(dir, name, w.measured(f), n.Disk(), n.MTime)
	return err
}

// at names what an error is about, but for a full disk, which is not about a file.
func at(path string, err error) error {
	if _, ok := err.(*refusal.Error); ok || err == nil || noSpace(err) {
		return err
	}
	if len(path) > 200 {
		path = path[:200] + "..."
	}
	return refusal.Newf("%s: %v", refusal.Word(path), refusal.Cause(err)).Hint("sandglass image prune   # and again")
}

// share puts the image's contents where the next import finds them. It is no part
// of the image: what cannot be put there is only not shared.
func (w *Work) share(t *tree.Tree) error {
	return t.Walk(func(_ string, n *tree.Node) error {
		if n.Kind != tree.File || !w.known[n.Key()] {
			return nil
		}
		w.known[n.Key()] = false
		at := shelf(n.Key())
		if w.harmed[n.Key()] {
			w.reshelve(n.Key(), at)
			return nil
		}
		err := unix.Linkat(w.blobs, n.Key(), w.files, at, 0)
		if err == unix.ENOENT && unix.Mkdirat(w.files, at[:2], 0o700) == nil {
			_ = unix.Linkat(w.blobs, n.Key(), w.files, at, 0)
		}
		return nil
	})
}

// reshelve puts a whole content in the place of a damaged one, by a rename: what
// has the old one open or mounted keeps it as it is.
func (w *Work) reshelve(key, at string) {
	const name = "whole"
	if unix.Linkat(w.blobs, key, w.dir, name, 0) == nil {
		_ = unix.Renameat(w.dir, name, w.files, at)
		_ = unix.Unlinkat(w.dir, name, 0)
	}
}
