package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"

	"golang.org/x/sys/unix"
)

// Schema is the version of image.json.
const Schema = 1

// MaxMeta bounds image.json.
const MaxMeta = 4 << 20

// Meta is image.json. Its SHA-256 is the image's digest, and it has that of the
// list of files, which has that of each file: one digest stands for every byte.
type Meta struct {
	Schema       int     `json:"schema"`
	OS           string  `json:"os,omitempty"`
	Architecture string  `json:"architecture,omitempty"` // Go's name, "" where the archive said none
	Config       Config  `json:"config"`
	Layers       []Layer `json:"layers"`
	Tree         string  `json:"tree"`               // digest of the list of files
	Manifest     string  `json:"manifest,omitempty"` // of what it was built of
	Files        int64   `json:"files"`
	Dirs         int64   `json:"dirs"`
	Links        int64   `json:"links"`
	Bytes        int64   `json:"bytes"`
	Inert        Some    `json:"inert"`   // set-uid and set-gid files, and those with capabilities, which have lost them
	Skipped      Some    `json:"skipped"` // devices, FIFOs and the like, which were left out
	Notes        Some    `json:"notes"`   // what else differs from the archive
}

// Some is how many there are, and the first of them, each as a word for a line.
type Some struct {
	Count int64    `json:"count"`
	First []string `json:"first,omitempty"`
}

// Config is how an image wants to be run.
type Config struct {
	Env        []string `json:"env,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user,omitempty"` // told, and not obeyed
}

// Layer is one layer as it was unpacked.
type Layer struct {
	Digest string `json:"digest"` // of its tar archive, uncompressed
	Bytes  int64  `json:"bytes"`
}

// Image is an open image. While it is open nobody removes it.
type Image struct {
	Meta
	ID   string
	Path string // of its directory
	Lock *os.File
}

// Root is the path of its files.
func (i *Image) Root() string { return i.Path + "/" + RootDir }

// Close lets go of the image.
func (i *Image) Close() { i.Lock.Close() }

// errContent is an image.json that is another's.
var errContent = errors.New("its content is not what its digest says")

// Load opens the image with a digest.
func (s *Store) Load(id string) (*Image, error) {
	if !IsDigest(id) {
		return nil, ErrNone
	}
	dir := ImagesDir + "/" + strings.TrimPrefix(id, DigestPrefix)
	open := func() (int, error) {
		return hostpath.Beneath(s.FD, dir+"/"+MetaFile, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	}
	fd, err := open()
	if err == unix.ENOENT {
		var st unix.Stat_t
		if unix.Fstatat(s.FD, dir, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return nil, ErrNone
		}
		// Images appear whole, so this one has lost its settings, unless it came just now.
		fd, err = open()
	}
	if err != nil {
		return nil, s.broken(dir+"/"+MetaFile, id, err)
	}
	img := &Image{ID: id, Path: s.Path + "/" + dir, Lock: os.NewFile(uintptr(fd), MetaFile)}
	err = img.load()
	if err == nil && !s.still(dir, fd) {
		err = ErrNone
	}
	if err != nil {
		img.Close()
		if err == ErrNone {
			return nil, err
		}
		return nil, s.broken(dir, id, err)
	}
	return img, nil
}

// still says that an image is where it was opened: who removes one has done so
// while its lock was waited for.
func (s *Store) still(dir string, fd int) bool {
	var open, there unix.Stat_t
	return unix.Fstat(fd, &open) == nil && unix.Fstatat(s.FD, dir+"/"+MetaFile, &there, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		open.Dev == there.Dev && open.Ino == there.Ino
}

func (i *Image) load() error {
	// Who removes it takes the other kind of lock first.
	if err := Flock(int(i.Lock.Fd()), unix.LOCK_SH); err != nil {
		return err
	}
	if err := Private(int(i.Lock.Fd())); err != nil {
		return err
	}
	text, err := readAll(i.Lock, MaxMeta)
	if err != nil {
		return err
	}
	if Digest(text) != i.ID {
		return errContent
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&i.Meta); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF || i.Schema != Schema || !IsDigest(i.Tree) || i.Manifest != "" && !IsDigest(i.Manifest) {
		return errContent
	}
	return nil
}

// Digest is the digest of a text.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return DigestPrefix + hex.EncodeToString(sum[:])
}

// Flock takes a lock on an open file, and waits for it unless LOCK_NB says no.
func Flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}

// Find opens the image that a name or a digest means.
func (s *Store) Find(ref string) (*Image, error) {
	id, err := s.Resolve(ref)
	if err != nil {
		return nil, err
	}
	return s.Load(id)
}

// Lookup is what a command line needs to know of an image of this user's: its
// digest and its settings. One of another machine's kind is refused.
func Lookup(ref string) (string, Config, error) {
	s, err := Open()
	if err != nil {
		return "", Config{}, err
	}
	defer s.Close()
	img, err := s.Find(ref)
	if err != nil {
		return "", Config{}, err
	}
	defer img.Close()
	return img.ID, img.Config, img.Fits(ref)
}

// All are the names and the digests of the images that this user has; none where that
// cannot be told, for they are for hints.
func All() (names, ids []string) {
	s, err := Open()
	if err != nil {
		return nil, nil
	}
	defer s.Close()
	names, _ = s.Names()
	ids, _ = s.Images()
	return names, ids
}

// Fits refuses an image that this machine cannot run.
func (m *Meta) Fits(ref string) error {
	if m.OS != "" && m.OS != runtime.GOOS || m.Architecture != "" && m.Architecture != runtime.GOARCH {
		return refusal.Newf("image %s is for %s/%s, and this machine is %s/%s", refusal.Word(ref), refusal.Word(m.OS), refusal.Word(m.Architecture), runtime.GOOS, runtime.GOARCH).
			Hint("sandglass image rm %s   # and import the one for this machine", refusal.Shell(ref))
	}
	return nil
}
