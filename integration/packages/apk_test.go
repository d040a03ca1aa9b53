package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// streams cuts an apk into its gzip streams: packed, and unpacked.
func streams(t *testing.T, data []byte) (packed, plain [][]byte) {
	t.Helper()
	for rest := bytes.NewReader(data); rest.Len() > 0; {
		begin := len(data) - rest.Len()
		z, err := gzip.NewReader(rest) // it is an io.ByteReader, so nothing is read ahead
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, data[begin:len(data)-rest.Len()])
		plain = append(plain, text)
	}
	return packed, plain
}

// What apk asks of a package before it installs it, by the rules of its format
// (version 2): a segment of a tar, without an end, that names the checksum of the
// second stream, which is a whole tar with the checksum of each file in it. Debian
// has no apk.
func TestAPK(t *testing.T) {
	dir, prefix := made(t)
	for _, arch := range arches {
		data, err := os.ReadFile(filepath.Join(dir, prefix+arch+".apk"))
		if err != nil {
			t.Fatal(err)
		}
		packed, plain := streams(t, data)
		if len(plain) != 2 {
			t.Fatalf("%s: %d streams, want 2: nothing is signed", arch, len(plain))
		}
		control, files := plain[0], plain[1]
		end := make([]byte, 1024)
		if bytes.HasSuffix(control, end[:512]) || !bytes.HasSuffix(files, end) {
			t.Errorf("%s: the control segment must have no end, the files an end", arch)
		}
		a := &archive{map[string]entry{}, map[string]string{}}
		if err := readTar(bytes.NewReader(append(bytes.Clone(control), end...)), a, func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("\ndatahash = %x\n", sha256.Sum256(packed[1])); !strings.Contains(a.meta[".PKGINFO"], want) {
			t.Errorf("%s: no %q in\n%s", arch, want, a.meta[".PKGINFO"])
		}
		root := testkit.Dir(t)
		unpackAPK(t, files, root)
		if arch == "amd64" {
			testkit.Requires(t, "amd64")
			installedIn(t, root, "apk")
		}
	}
}

// unpackAPK writes the files, and compares each with the checksum that apk
// compares it with.
func unpackAPK(t *testing.T, files []byte, root string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(files)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, h.FileInfo().Mode().Perm()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := h.PAXRecords["APK-TOOLS.checksum.SHA1"], fmt.Sprintf("%x", sha1.Sum(text)); got != want {
			t.Errorf("%s: checksum %q, want %s", h.Name, got, want)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, h.FileInfo().Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}
