package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/tree"

	"golang.org/x/sys/unix"
)

// maxProblems bounds what is told of one image.
const maxProblems = 20

// checker compares an image with its list.
type checker struct{ problems []string }

func (c *checker) wrong(path, format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, refusal.Word("/"+path)+": "+fmt.Sprintf(format, args...))
	}
}

// Verify reads every byte of an image and says what is not as it was imported.
// Its digest stands for all of it: image.json by that digest, the list of files
// by the one in there, each file by the one in the list.
func Verify(s *image.Store, img *image.Image) ([]string, error) {
	dir, err := hostpath.OpenDir(img.Path)
	if err != nil {
		return nil, failed(s, img.ID, err)
	}
	defer unix.Close(dir)
	sum, err := hashFile(dir, image.TreeFile)
	if err != nil || image.DigestPrefix+sum != img.Tree {
		return []string{"the list of files is not the one of this image"}, nil
	}
	if img.Manifest != "" {
		if sum, err := hashFile(dir, image.ManifestFile); err != nil || image.DigestPrefix+sum != img.Manifest {
			return []string{"the manifest is not the one of this image"}, nil
		}
	}
	files, err := readList(dir, image.TreeFile)
	if err != nil {
		return nil, failed(s, img.ID, err)
	}
	c := &checker{}
	c.directory(dir, image.RootDir, "", files.Root)
	return c.problems, nil
}

// hashFile is the digest of a regular file, which is opened without following a link.
func hashFile(dir int, name string) (string, error) {
	fd, err := hostpath.Beneath(dir, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

func (c *checker) directory(in int, name, path string, n *tree.Node) {
	fd, err := hostpath.DirBeneath(in, name)
	if err != nil {
		c.wrong(path, "%v", err)
		return
	}
	defer unix.Close(fd)
	c.mode(fd, ".", path, unix.S_IFDIR|n.Disk())
	have, err := list(fd)
	if err != nil {
		c.wrong(path, "%v", refusal.Cause(err))
		return
	}
	slices.Sort(have)
	want := n.Names()
	for _, name := range have {
		if n.Child(name) == nil {
			c.wrong(below(path, name), "it is not of this image")
		}
	}
	for _, name := range want {
		if _, there := slices.BinarySearch(have, name); !there {
			c.wrong(below(path, name), "it is missing")
			continue
		}
		c.entry(fd, name, below(path, name), n.Child(name))
	}
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

func (c *checker) entry(dir int, name, path string, n *tree.Node) {
	switch n.Kind {
	case tree.Dir:
		c.directory(dir, name, path, n)
	case tree.Link:
		buf := make([]byte, len(n.Target)+1)
		size, err := unix.Readlinkat(dir, name, buf)
		if err != nil || string(buf[:size]) != n.Target {
			c.wrong(path, "it is not the link that it was")
		}
	case tree.File:
		if !c.mode(dir, name, path, unix.S_IFREG|n.Disk()) {
			return
		}
		if sum, err := hashFile(dir, name); err != nil {
			c.wrong(path, "%v", refusal.Cause(err))
		} else if sum != n.Sum {
			c.wrong(path, "its content has changed")
		}
	}
}

// mode compares what a file is and whose.
func (c *checker) mode(dir int, name, path string, want uint32) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		c.wrong(path, "%v", err)
		return false
	}
	if st.Mode != want {
		c.wrong(path, "its mode is %o and was %o", st.Mode, want)
		return false
	}
	if int(st.Uid) != os.Geteuid() {
		c.wrong(path, "it belongs to user %d", st.Uid)
	}
	return true
}

// Manifest is what a built image says it is made of: nothing, of one that was imported.
func Manifest(s *image.Store, img *image.Image) (*manifest.Manifest, error) {
	if img.Manifest == "" {
		return &manifest.Manifest{}, nil
	}
	text, err := readSmall(img.Path, image.ManifestFile)
	if err == nil && image.Digest(text) != img.Manifest {
		err = errors.New("the manifest is not the one of this image")
	}
	var m *manifest.Manifest
	if err == nil {
		m, err = manifest.Parse(string(text))
	}
	if err != nil {
		return nil, failed(s, img.ID, err)
	}
	return m, nil
}

// maxManifest is more than a manifest of as many files as an image may have.
const maxManifest = 256 << 20

func readSmall(dir, name string) ([]byte, error) {
	d, err := hostpath.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(d)
	fd, err := hostpath.Beneath(d, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxManifest))
}
