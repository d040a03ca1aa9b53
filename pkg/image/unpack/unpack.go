// Package unpack reads what people have of images: a docker-save archive, an OCI
// layout or an archive of one, a tar archive of a root, a directory. All of it is
// hostile. It unpacks to no file system: entries become a tree in memory
// (package tree) and contents go to a Sink, which names them by their digest.
//
// Every number is bounded before it is believed: files, bytes, how much larger
// than the archive they may be, layers, the settings, paths and their depth.
package unpack

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"

	"golang.org/x/sys/unix"
)

// Limits of one import.
type Limits struct {
	Files  int64 // files, directories and links
	Bytes  int64 // of all files together, those included that a later layer replaces
	Ratio  int64 // how many times larger than the archive they may be
	Layers int64
	Config int64 // bytes of settings and of each list of layers
}

// Defaults are enough for the largest images that people run code in.
func Defaults() Limits {
	return Limits{Files: tree.UsualNodes, Bytes: 16 << 30, Ratio: 200, Layers: 256, Config: 4 << 20}
}

// ratioFloor is what an archive of any size may hold: a few files of zeros are no bomb.
const ratioFloor = 64 << 20

// Bounds of every tree: what the kernel takes, and fewer directories below each
// other than a process has descriptors.
const (
	maxPath  = 4095
	maxDepth = 128
)

// Bounds are those of a tree with these limits.
func (l *Limits) Bounds() tree.Bounds {
	return tree.Bounds{Nodes: l.Files, Path: maxPath, Depth: maxDepth}
}

// Sink takes the content of files.
type Sink interface {
	// Add keeps a content under a mode and a time, and says its SHA-256 and size.
	Add(r io.Reader, mode uint32, mtime int64) (sum string, size int64, err error)
	// Spool keeps an archive that is unpacked first, in a file without a name.
	Spool(r io.Reader) (*os.File, error)
}

// Unpacked is an image in memory, but for its contents.
type Unpacked struct {
	Tree *tree.Tree
	Meta image.Meta
	// Called are the names that the archive has for itself. It chose them, so
	// they are told and mean nothing.
	Called []string
	// Manifest is what a built image is made of, nil for one that was imported.
	Manifest []byte
}

// unpacker works one source off.
type unpacker struct {
	limits Limits
	sink   Sink
	out    *Unpacked

	packed  int64 // bytes of the archive so far
	stream  int64 // bytes that came out of it
	content int64 // bytes of files
}

// Import reads a file or directory.
func Import(name string, limits Limits, sink Sink) (*Unpacked, error) {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, refusal.Newf("%s: %v", refusal.Word(name), refusal.Cause(err)).Hint("ls -ld -- %s", refusal.Shell(name))
	}
	u := newUnpacker(limits, sink)
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return nil, refusal.Newf("%s: %v", refusal.Word(name), err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = u.directory(real)
	} else {
		err = u.file(real)
	}
	if err == nil {
		err = u.finish()
	}
	if err != nil {
		return nil, told(name, st.Mode&unix.S_IFMT == unix.S_IFDIR, err)
	}
	return u.out, nil
}

// told puts the name of what is imported into a refusal and its hints.
func told(name string, dir bool, err error) error {
	r := refusal.Within(refusal.Word(name), err)
	for i, h := range r.Hints {
		r.Hints[i] = strings.ReplaceAll(h, "FILE", refusal.Shell(name))
	}
	if denied := len(r.Hints) == 0 && strings.HasSuffix(r.What, ": "+unix.EACCES.Error()); denied && dir {
		r.Hint("chmod -R u+rX -- %s   # where the files are yours", refusal.Shell(name))
	} else if denied {
		r.Hint("sudo chown -- \"$(id -u)\" %s   # where root has made it, as sudo docker save does", refusal.Shell(name)).
			Hint("ls -l -- %s", refusal.Shell(name))
	}
	return r
}

func newUnpacker(limits Limits, sink Sink) *unpacker {
	u := &unpacker{limits: limits, sink: sink, out: &Unpacked{Tree: tree.New(limits.Bounds())}}
	u.out.Meta.Schema = image.Schema
	return u
}

// directory is an OCI layout, what podman calls docker-dir, or a root.
func (u *unpacker) directory(path string) error {
	fd, err := hostpath.OpenDir(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstatat(fd, "oci-layout", &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return u.oci(&dirFiles{fd})
	}
	if flat := (&flatFiles{dirFiles{fd}}); flat.is() {
		return u.flat(flat)
	}
	return u.folder(fd)
}

// file is an archive of some kind.
func (u *unpacker) file(path string) error {
	f, size, err := hostpath.OpenRegular(path)
	if err != nil {
		return refusal.Cause(err)
	}
	defer f.Close()
	return u.archive(f, size)
}

// source is an archive, wherever it is.
type source interface {
	io.ReadSeeker
	io.ReaderAt
}

// archive is one of an image or of a root.
func (u *unpacker) archive(f source, size int64) error {
	u.packed = size
	kind, err := sniff(f)
	if err != nil {
		return err
	}
	if kind != plain {
		spool, err := u.spool(f, kind)
		if err != nil {
			return err
		}
		defer spool.Close()
		f = spool
	}
	if err := begins(f); err != nil {
		return err
	}
	files, err := u.index(f)
	if err != nil {
		return err
	}
	switch {
	case files.has("oci-layout") && files.has("index.json"):
		return u.oci(files)
	case files.has("manifest.json"):
		return u.docker(files)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return u.layer(f, image.Layer{})
}

// spool unpacks a compressed archive, which is then read where its parts are.
func (u *unpacker) spool(f io.Reader, kind compression) (*os.File, error) {
	r, done, err := decompress(f, kind)
	if err != nil {
		return nil, err
	}
	defer done()
	spool, err := u.sink.Spool(&meter{r: r, u: u})
	u.stream = 0 // it is counted again when it is read
	if err != nil {
		return nil, damaged(err)
	}
	if _, err = spool.Seek(0, io.SeekStart); err != nil {
		spool.Close()
		return nil, err
	}
	return spool, nil
}

// firstNames bounds how many names of a kind an image lists.
const firstNames = 100

func note(s *image.Some, text string) {
	s.Count++
	if len(s.First) < firstNames && len(text) < 1024 {
		s.First = append(s.First, text)
	}
}
