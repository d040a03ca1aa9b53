package unpack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"

	"golang.org/x/sys/unix"
)

// files are the parts of an image: in a directory, or in an archive of one.
type files interface {
	open(name string) (*part, error)
}

// part is one of them.
type part struct {
	*io.SectionReader
	close func() error
}

// dirFiles are in a directory.
type dirFiles struct{ fd int }

func (d *dirFiles) open(name string) (*part, error) {
	fd, err := hostpath.Beneath(d.fd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, missing(name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = hostpath.ErrNotRegular
	}
	if err != nil {
		f.Close()
		return nil, missing(name, err)
	}
	return &part{io.NewSectionReader(f, 0, st.Size), f.Close}, nil
}

// flatFiles are in a directory without others below it, as podman save --format
// docker-dir and the dir: of skopeo have it: a manifest, and each part by its hex.
type flatFiles struct{ dirFiles }

func (d *flatFiles) open(name string) (*part, error) {
	return d.dirFiles.open(strings.TrimPrefix(name, blobs))
}

// is says whether the directory calls itself so. A root is not taken for one: its
// files would be lost.
func (d *flatFiles) is() bool {
	p, err := d.open("version")
	if err != nil {
		return false
	}
	defer p.close()
	text, err := io.ReadAll(io.LimitReader(p, 64))
	return err == nil && strings.HasPrefix(string(text), "Directory Transport Version: ")
}

func missing(name string, err error) error {
	return refusal.Newf("%s: %v", refusal.Word(cut(name)), err)
}

// span is where in an archive a file is.
type span struct {
	at, size int64
	link     string // another name, of archives that older dockers wrote
	twice    bool
}

// tarFiles are in an archive.
type tarFiles struct {
	f     io.ReaderAt
	spans map[string]span
}

// index notes where in a plain tar archive each file is.
func (u *unpacker) index(f source) (*tarFiles, error) {
	files := &tarFiles{f: f, spans: map[string]span{}}
	text := int64(0)
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, damaged(err)
		}
		if len(files.spans) > int(u.limits.Files) {
			return nil, tree.Over(u.limits.Files, u.limits.Files, "entries")
		}
		if len(h.Name) > maxPart || len(h.Linkname) > maxPart {
			continue // no part of an image's has such a name
		}
		if text += int64(len(h.Name) + len(h.Linkname)); text/tree.PerNode > u.limits.Files {
			return nil, tree.Over(u.limits.Files, tree.PerNode*u.limits.Files, "bytes of names and links")
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		name := path.Clean(h.Name)
		_, twice := files.spans[name]
		switch h.Typeflag {
		case tar.TypeReg:
			files.spans[name] = span{at: at, size: h.Size, twice: twice}
		case tar.TypeSymlink:
			files.spans[name] = span{link: path.Join(path.Dir(name), h.Linkname), twice: twice}
		}
	}
}

// maxPart is longer than any name in a layout or a docker-save archive.
const maxPart = 512

func (t *tarFiles) has(name string) bool {
	_, ok := t.spans[name]
	return ok
}

func (t *tarFiles) open(name string) (*part, error) {
	s, ok := t.spans[path.Clean(name)]
	if ok && s.link != "" && !s.twice {
		s, ok = t.spans[s.link] // once: a link to a link is a game
		ok = ok && s.link == ""
	}
	switch {
	case !ok:
		return nil, missing(name, errors.New("it is not in the archive"))
	case s.twice: // two readers would see two images
		return nil, missing(name, errors.New("it is in the archive more than once"))
	}
	return &part{io.NewSectionReader(t.f, s.at, s.size), func() error { return nil }}, nil
}

// document reads a small file of JSON. Its size is judged before.
func (u *unpacker) document(from files, name, digest string, into any) error {
	p, err := from.open(name)
	if err != nil {
		return err
	}
	defer p.close()
	if p.Size() > u.limits.Config {
		return refusal.Newf("%s: %d bytes, more than %d", refusal.Word(cut(name)), p.Size(), u.limits.Config).
			Hint("--max-config %d", p.Size())
	}
	text, err := io.ReadAll(p)
	if err != nil {
		return damaged(err)
	}
	if digest != "" && image.Digest(text) != digest {
		return wrongDigest(name, image.Digest(text), digest)
	}
	if values := bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("[")); values > maxValues {
		return refusal.Newf("%s: more than %d values", refusal.Word(cut(name)), maxValues)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return refusal.Newf("%s: %v", refusal.Word(cut(name)), err)
	}
	return nil
}

// maxValues bounds what JSON becomes in memory: three bytes, of an empty object, are
// two hundred.
const maxValues = 50000

func wrongDigest(name, got, want string) error {
	return refusal.Newf("%s: it is %s and should be %s", refusal.Word(cut(name)), got, refusal.Word(want)).
		Hint("get the image again: it was changed or cut off on its way")
}

// packedLayer puts a layer, as it is packed, on top of the tree. digest is that
// of the packed bytes, "" where nobody says one; diff that of the unpacked ones.
func (u *unpacker) packedLayer(from files, name, digest, diff string) error {
	p, err := from.open(name)
	if err != nil {
		return err
	}
	defer p.close()
	kind, err := sniff(p)
	if err != nil {
		return err
	}
	if _, inArchive := from.(*tarFiles); !inArchive {
		u.packed += p.Size() // an archive's own size counts already
	}
	sum := sha256.New()
	packed := io.TeeReader(p, sum)
	r, done, err := decompress(packed, kind)
	if err != nil {
		return err
	}
	defer done()
	if err := u.layer(r, image.Layer{Digest: diff}); err != nil {
		return err
	}
	if n, err := io.Copy(io.Discard, packed); err != nil || n != 0 {
		return refusal.Newf("something follows the end of the layer")
	}
	got := image.DigestPrefix + hex.EncodeToString(sum.Sum(nil))
	if digest != "" && got != digest {
		return wrongDigest(name, got, digest)
	}
	return nil
}

// blob is the name of a digest in a layout.
func blob(digest string) (string, error) {
	if !image.IsDigest(digest) {
		return "", refusal.Newf("%s is no digest of SHA-256", refusal.Word(cut(digest)))
	}
	return blobs + strings.TrimPrefix(digest, image.DigestPrefix), nil
}

// blobs is where in a layout they are.
const blobs = "blobs/sha256/"
