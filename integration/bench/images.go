package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"sandglass/internal/testkit/machine"
)

const imageName = "bench"

// fromImage runs the program from an image of nothing but itself and its libraries.
func fromImage(o *options, dir, self string, args []string) *contender {
	root := filepath.Join(dir, "root")
	c := command("sandglass, an image", self, args...)
	c.env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(dir, "data"))
	if err := copyProgram(root); err != nil {
		c.missing = err.Error()
	} else if _, err := importImage(o, filepath.Join(dir, "data"), imageName, root); err != nil {
		c.missing = err.Error()
	}
	return c
}

// copyProgram puts the program, its loader and its libraries below root.
func copyProgram(root string) error {
	loader, err := filepath.Glob("/lib*/ld-linux*")
	if err != nil || len(loader) == 0 {
		return fmt.Errorf("no loader of glibc's")
	}
	text, err := exec.Command(loader[0], "--list", program).Output()
	if err != nil {
		return fmt.Errorf("%s --list: %w", loader[0], err)
	}
	files := []string{program, loader[0]}
	for _, f := range strings.Fields(string(text)) {
		if strings.HasPrefix(f, "/") && f != loader[0] {
			files = append(files, f)
		}
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(root+filepath.Dir(f), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(root+f, text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// cost is what an import took.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes of memory
}

func importImage(o *options, data, name, path string) (cost, error) {
	cmd := exec.Command(o.tool, "import", "--name", name, path)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+data)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	peak := machine.WatchPeak(cmd.Process.Pid)
	err := cmd.Wait()
	c := cost{wall: time.Since(began), peak: peak()}
	if err != nil {
		return c, fmt.Errorf("import of %s: %w: %s", path, err, errs.String())
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// layer is a tar archive of files with sizes as they are in an image of programs:
// most are small, and half of their bytes are in the largest. Half of each can be
// compressed away. The same seed gives the same bytes.
func layer(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for n := 0; b.Len() < size; n++ {
		text := make([]byte, 1<<(6+r.IntN(15)))
		for i := 0; i < len(text); i += 16 { // 8 bytes of chance, 8 of none
			for j := i; j < min(i+8, len(text)); j++ {
				text[j] = byte(r.Uint32())
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("usr/lib/%d/%d/file%d", seed, n/100, n), Mode: 0o644, Size: int64(len(text)), ModTime: time.Unix(1e9, 0)}
		w.WriteHeader(h) // to memory: it cannot fail
		w.Write(text)
	}
	w.Close()
	return b.Bytes()
}

// saved writes an archive as docker save does.
func saved(path string, pack func(io.Writer) io.WriteCloser, layers ...[]byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := pack(f)
	w := tar.NewWriter(out)
	put := func(name string, text []byte) {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))})
		}
		if err == nil {
			_, err = w.Write(text)
		}
	}
	var ids, names []string
	for _, l := range layers {
		sum := sha256.Sum256(l)
		hex := hex.EncodeToString(sum[:])
		ids, names = append(ids, "sha256:"+hex), append(names, hex+".tar")
		put(hex+".tar", l)
	}
	config, _ := json.Marshal(map[string]any{"os": "linux", "architecture": runtime.GOARCH, "config": map[string]any{}, "rootfs": map[string]any{"diff_ids": ids}})
	manifest, _ := json.Marshal([]map[string]any{{"Config": "config.json", "Layers": names}})
	put("config.json", config)
	put("manifest.json", manifest)
	for _, close := range []func() error{w.Close, out.Close} {
		if cerr := close(); err == nil {
			err = cerr
		}
	}
	return err
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

var packers = []struct {
	name string
	pack func(io.Writer) io.WriteCloser
}{
	{"docker save, plain", func(w io.Writer) io.WriteCloser { return plain{w} }},
	{"docker save, gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }},
	{"docker save, zstd", func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }},
}

const large = 300 << 20

func measureImages(o *options, dir string) error {
	layers := [][]byte{layer(1, large*2/3), layer(2, large/3)}
	fmt.Printf("\n| %-24s | archive MB | wall s | CPU s | peak memory MB | on disk MB |\n|%s|---:|---:|---:|---:|---:|\n", "import of 300 MB", strings.Repeat("-", 26))
	row := func(name, path string, c cost, data string) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		used, _, err := machine.Disk(data)
		fmt.Printf("| %-24s | %10d | %6.2f | %5.2f | %14d | %10d |\n", name, st.Size()>>20, c.wall.Seconds(), c.cpu.Seconds(), c.peak>>20, used>>20)
		return err
	}
	for i, p := range packers {
		path, data := filepath.Join(dir, "archive"), filepath.Join(dir, "data")
		if err := saved(path, p.pack, layers...); err != nil {
			return err
		}
		c, err := importImage(o, data, "large", path)
		if err == nil {
			err = row(p.name, path, c, data)
		}
		if err == nil && i == len(packers)-1 {
			if c, err = importImage(o, data, "again", path); err == nil {
				err = row("the same again", path, c, data)
			}
		}
		if err != nil {
			return err
		}
		if err := os.RemoveAll(data); err != nil {
			return err
		}
	}
	return measureShared(o, dir)
}

// measureShared imports twenty images that share a layer of 100 MB.
func measureShared(o *options, dir string) error {
	base, path, data := layer(3, 100<<20), filepath.Join(dir, "archive"), filepath.Join(dir, "data")
	var sum cost
	fmt.Printf("\n| %-24s | wall s, all | on disk MB |\n|%s|---:|---:|\n", "images that share 100 MB", strings.Repeat("-", 26))
	for n := range 20 {
		if err := saved(path, packers[0].pack, base, layer(uint64(100+n), 5<<20)); err != nil {
			return err
		}
		c, err := importImage(o, data, fmt.Sprintf("image%d", n), path)
		if err != nil {
			return err
		}
		sum.wall += c.wall
		if n == 0 || n == 19 {
			used, _, err := machine.Disk(data)
			if err != nil {
				return err
			}
			fmt.Printf("| %-24d | %11.2f | %10d |\n", n+1, sum.wall.Seconds(), used>>20)
		}
	}
	return nil
}
