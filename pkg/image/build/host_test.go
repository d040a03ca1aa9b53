package build

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandglass/pkg/image/tree"
	"sandglass/pkg/image/unpack"
)

// digests is a sink that keeps nothing.
type digests struct{}

func (digests) Add(r io.Reader, _ uint32, _ int64) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

func (digests) Spool(io.Reader) (*os.File, error) { return nil, os.ErrInvalid }

var _ unpack.Sink = digests{}

// What other users of the host may not read is in no image, nor what a link of a
// standard library leads to in /etc.
func TestHostLeavesPrivateFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("lib/open.py", 0o644)
	write("lib/secret", 0o640)
	write("lib/site-packages/x.py", 0o644)
	write("elsewhere/data", 0o644)
	for name, to := range map[string]string{"lib/a": "open.py", "lib/b": "../elsewhere/data", "lib/c": "../elsewhere", "lib/d": "/etc/ssl", "lib/e": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for private, want := range map[bool][]string{
		false: {"l a", "f b", "f c/data", "l d", "l e", "f open.py"},
		true:  {"l a", "f b", "f c/data", "l d", "l e", "f open.py", "f secret"},
	} {
		h := &host{builder: newBuilder(digests{}), trees: []string{dir + "/lib"}, private: private}
		if err := h.take(dir + "/lib"); err != nil {
			t.Fatal(err)
		}
		var got []string
		at := place(dir + "/lib")
		err := h.out.Tree.Walk(func(name string, n *tree.Node) error {
			if n.Kind != tree.Dir {
				rel, err := filepath.Rel(at, name)
				got = append(got, string(rune(n.Kind))+" "+rel)
				return err
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("private %v: %q, want %q (%v)", private, got, want, err)
		}
	}
}
