// Command ggcr writes one image in every form that go-containerregistry has, and
// is a module of its own: nothing of that library is linked or fetched for
// anything but this test.
//
//	ggcr BUSYBOX DIR
package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := write(os.Args[1], os.Args[2]); err != nil {
		os.Stderr.WriteString("ggcr: " + err.Error() + "\n")
		os.Exit(1)
	}
}

func layer(how compression.Compression, entries map[string]string) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, n := range []string{"bin/busybox", "srv/a", "srv/b", "srv/.wh.a", "srv/c"} {
		text, ok := entries[n]
		if !ok {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: n, Mode: 0o755, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompression(how))
}

// image has two layers; the second takes a file of the first away.
func image(busybox string, how compression.Compression) (v1.Image, error) {
	text, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	first, err := layer(how, map[string]string{"bin/busybox": string(text), "srv/a": "a", "srv/b": "b"})
	if err != nil {
		return nil, err
	}
	second, err := layer(how, map[string]string{"srv/.wh.a": "", "srv/c": "c"})
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, first, second)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config.Entrypoint, file.Config.Cmd, file.Config.Env, file.Config.WorkingDir = []string{"/bin/busybox"}, []string{"ls", "/srv"}, []string{"A=b"}, "/srv"
	return mutate.ConfigFile(img, file)
}

func write(busybox, dir string) error {
	tag, err := name.NewTag("evil:latest")
	if err != nil {
		return err
	}
	for form, how := range map[string]compression.Compression{"gzip": compression.GZip, "zstd": compression.ZStd, "none": compression.None} {
		img, err := image(busybox, how)
		if err != nil {
			return err
		}
		if err := tarball.WriteToFile(filepath.Join(dir, form+".tar"), tag, img); err != nil {
			return err
		}
		// A list of two machines' images, of which one is this one's.
		other := mutate.MediaType(img, "application/vnd.oci.image.manifest.v1+json")
		index := mutate.AppendManifests(empty.Index,
			mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}},
			mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
		if _, err := layout.Write(filepath.Join(dir, form+".oci"), index); err != nil {
			return err
		}
		flat, err := os.Create(filepath.Join(dir, form+".root.tar"))
		if err != nil {
			return err
		}
		if _, err := io.Copy(flat, mutate.Extract(img)); err != nil {
			return err
		}
		if err := flat.Close(); err != nil {
			return err
		}
	}
	return nil
}
