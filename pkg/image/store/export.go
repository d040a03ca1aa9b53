package store

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"

	"golang.org/x/sys/unix"
)

// Export writes an image as an OCI layout with one layer, to a directory that is
// not there yet. Owners and modes are those of the archive that it came from; file
// capabilities are lost. The same image gives the same bytes.
// Once stop says so, which is asked again and again and once more when all is written,
// it ends with ErrStopped, and has left nothing.
func Export(s *image.Store, img *image.Image, to string, stop func() bool) (err error) {
	err = os.Mkdir(to, 0o777)
	if above := filepath.Dir(to); errors.Is(err, fs.ErrNotExist) {
		return refusal.Newf("%s: %v", refusal.Word(above), refusal.Cause(err)).Hint("mkdir -p -- %s", refusal.Shell(above))
	}
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(to), refusal.Cause(err)).Hint("sandglass image export IMAGE DIR   # a DIR that is not there yet")
	}
	defer func() {
		if err != nil {
			os.RemoveAll(to) // it was made here
		}
	}()
	if err := os.MkdirAll(filepath.Join(to, "blobs/sha256"), 0o777); err != nil {
		return refusal.Newf("%s: %v", refusal.Word(to), refusal.Cause(err))
	}
	e := &exporter{to: to, img: img, stop: stop}
	layer, err := e.layer()
	if err == nil {
		err = e.describe(layer)
	}
	if err == nil && stop() {
		err = ErrStopped
	}
	if errors.Is(err, ErrStopped) {
		return ErrStopped
	}
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(to), refusal.Cause(err)).Hint("sandglass image verify %s", img.ID)
	}
	return nil
}

// ErrStopped is Export's end when it was told to stop.
var ErrStopped = errors.New("the export was stopped")

type exporter struct {
	to   string
	img  *image.Image
	stop func() bool
}

type object map[string]any

// blob moves or writes a part to its place, by its digest.
func (e *exporter) blob(text []byte, mediaType string) (object, error) {
	id := image.Digest(text)
	err := os.WriteFile(e.place(id), text, 0o666)
	return object{"mediaType": mediaType, "digest": id, "size": len(text)}, err
}

func (e *exporter) place(id string) string {
	return filepath.Join(e.to, "blobs/sha256", id[len(image.DigestPrefix):])
}

const ociTypes = "application/vnd.oci.image."

// layer writes all files as one archive.
func (e *exporter) layer() (object, error) {
	part := filepath.Join(e.to, "blobs/sha256/part")
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	root, err := hostpath.OpenDir(e.img.Root())
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	dir, err := hostpath.OpenDir(e.img.Path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	files, err := readList(dir, image.TreeFile)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	counted := &counter{w: io.MultiWriter(f, h), stop: e.stop}
	t := tar.NewWriter(counted)
	if err := files.Walk(func(path string, n *tree.Node) error { return entry(t, root, path, n) }); err != nil {
		return nil, err
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	id := image.DigestPrefix + hex.EncodeToString(h.Sum(nil))
	return object{"mediaType": ociTypes + "layer.v1.tar", "digest": id, "size": counted.n}, os.Rename(part, e.place(id))
}

type counter struct {
	w    io.Writer
	n    int64
	stop func() bool
}

func (c *counter) Write(p []byte) (int, error) {
	if c.stop() {
		return 0, ErrStopped
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func entry(t *tar.Writer, root int, path string, n *tree.Node) error {
	h := &tar.Header{
		Name: path, Mode: int64(n.Mode), Uid: int(n.UID), Gid: int(n.GID), ModTime: time.Unix(n.MTime, 0), Format: tar.FormatPAX,
	}
	switch n.Kind {
	case tree.Dir:
		h.Typeflag, h.Name = tar.TypeDir, path+"/"
		if path == "" {
			h.Name = "./"
		}
	case tree.Link:
		h.Typeflag, h.Linkname = tar.TypeSymlink, n.Target
	default:
		h.Typeflag, h.Size = tar.TypeReg, n.Size
	}
	if err := t.WriteHeader(h); err != nil || n.Kind != tree.File {
		return err
	}
	fd, err := hostpath.Beneath(root, path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	// What has changed would be exported under the name of what was imported.
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(t, sum), io.LimitReader(f, n.Size))
	more, _ := f.Read(make([]byte, 1))
	if err == nil && (size+int64(more) != n.Size || hex.EncodeToString(sum.Sum(nil)) != n.Sum) {
		err = refusal.Newf("%s: its content has changed", refusal.Word("/"+path))
	}
	return err
}

func (e *exporter) describe(layer object) error {
	m := &e.img.Meta
	os_, arch := m.OS, m.Architecture
	if os_ == "" {
		os_, arch = "linux", runtime.GOARCH
	}
	c := &m.Config
	text, err := json.Marshal(object{
		"os": os_, "architecture": arch,
		"config": object{"Env": c.Env, "Entrypoint": c.Entrypoint, "Cmd": c.Cmd, "WorkingDir": c.WorkingDir, "User": c.User},
		"rootfs": object{"type": "layers", "diff_ids": []any{layer["digest"]}},
	})
	if err != nil {
		return err
	}
	config, err := e.blob(text, ociTypes+"config.v1+json")
	if err != nil {
		return err
	}
	if text, err = json.Marshal(object{"schemaVersion": 2, "mediaType": ociTypes + "manifest.v1+json", "config": config, "layers": []object{layer}}); err != nil {
		return err
	}
	manifest, err := e.blob(text, ociTypes+"manifest.v1+json")
	if err != nil {
		return err
	}
	manifest["platform"] = object{"os": os_, "architecture": arch}
	if text, err = json.Marshal(object{"schemaVersion": 2, "manifests": []object{manifest}}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(e.to, "index.json"), text, 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.to, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o666)
}
