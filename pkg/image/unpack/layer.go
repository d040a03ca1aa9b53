package unpack

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"
)

// layer puts one tar archive on top of the tree. want is what it must be, by the
// image's own settings; without a digest it is what it is.
func (u *unpacker) layer(r io.Reader, want image.Layer) error {
	m := &meter{r: r, u: u, hash: sha256.New()}
	u.out.Tree.Begin()
	t := tar.NewReader(m)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // which our own look at paths refuses
			return damaged(err)
		}
		if err := u.entry(t, h); err != nil {
			return err
		}
	}
	if err := m.rest(); err != nil {
		return err
	}
	got := image.Layer{Digest: image.DigestPrefix + hex.EncodeToString(m.hash.Sum(nil)), Bytes: m.n}
	if want.Digest != "" && got.Digest != want.Digest {
		return refusal.Newf("unpacked it is %s, and the settings say %s", got.Digest, refusal.Word(want.Digest)).
			Hint("get the image again: it was changed or cut off on its way")
	}
	u.out.Meta.Layers = append(u.out.Meta.Layers, got)
	return nil
}

// entry is one entry of a layer.
func (u *unpacker) entry(r io.Reader, h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if gone, err := u.out.Tree.Whiteout(h.Name); gone || err != nil {
		return err
	}
	n := tree.Node{
		Mode: uint32(h.Mode) & 0o7777, UID: int64(h.Uid), GID: int64(h.Gid),
		MTime: seconds(h.ModTime.Unix()), Caps: h.PAXRecords[capability] != "",
	}
	switch h.Typeflag {
	case tar.TypeDir:
		n.Kind = tree.Dir
		return u.out.Tree.Put(h.Name, n)
	case tar.TypeSymlink:
		n.Kind, n.Target, n.Mode = tree.Link, h.Linkname, 0o777
		return u.out.Tree.Put(h.Name, n)
	case tar.TypeLink:
		return u.out.Tree.HardLink(h.Name, h.Linkname)
	case tar.TypeReg, tar.TypeGNUSparse:
		n.Kind = tree.File
		if err := u.take(r, h.Size, &n); err != nil {
			return refusal.Within(refusal.Word(cut(h.Name)), damaged(err))
		}
		return u.out.Tree.Put(h.Name, n)
	}
	u.skip(h.Name, kindName(h.Typeflag))
	return nil
}

// capability is where a tar archive has a file's capabilities.
const capability = "SCHILY.xattr.security.capability"

func kindName(flag byte) string {
	switch flag {
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "FIFO"
	}
	return "entry of an unknown kind"
}

// skip leaves something out, and tells of it.
func (u *unpacker) skip(name, kind string) {
	note(&u.out.Meta.Skipped, kind+" "+refusal.Word(cut(name)))
}

// cut keeps a name short enough to be told.
func cut(name string) string {
	name = strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if len(name) > 200 {
		return name[:200] + "..."
	}
	return name
}

// seconds keeps a time within what file systems have: one outside would come
// back as another.
func seconds(t int64) int64 { return min(max(t, 0), 1<<34) }

// take hands a file's content to the sink. Its size is judged before: holes of a
// sparse file cost the archive nothing.
func (u *unpacker) take(r io.Reader, size int64, n *tree.Node) error {
	u.content += size
	if size < 0 || u.content < 0 {
		return refusal.Newf("a size of %d bytes", size)
	}
	if err := u.bounds(u.content, 0); err != nil {
		return err
	}
	sum, got, err := u.sink.Add(r, n.Disk(), n.MTime)
	if err != nil {
		return err
	}
	if got != size {
		return refusal.Newf("%d bytes where %d were announced", got, size)
	}
	n.Sum, n.Size = sum, got
	return nil
}
