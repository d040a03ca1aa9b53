package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const sumsName = "SHA256SUMS"

// make copies the tree and makes all files of the release from the copy.
func (r *release) make(root, tree, out, cache string) error {
	if err := export(root, tree); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	common, err := r.files(tree)
	if err != nil {
		return err
	}
	for _, arch := range r.arches {
		var all []file
		var contents []byte // of sandglass itself
		for _, command := range commands {
			var files []file
			if files, err = r.binary(tree, arch, command, cache); err != nil {
				return err
			}
			all, contents = append(files, all...), files[1].data
		}
		all = append(all, common...)
		name := "sandglass-" + r.version + "-linux-" + arch
		archive, err := r.tarball(name, all)
		if err != nil {
			return err
		}
		if err := put(filepath.Join(out, name+".tar.gz"), archive, 0o644); err != nil {
			return err
		}
		if err := put(filepath.Join(out, name+".cdx.json"), contents, 0o644); err != nil {
			return err
		}
		if err := r.pack(tree, arch, all, filepath.Join(out, name)); err != nil {
			return err
		}
	}
	libraries, err := r.clients(tree)
	if err != nil {
		return err
	}
	for _, f := range libraries {
		if err := put(filepath.Join(out, f.path), f.data, f.mode); err != nil {
			return err
		}
	}
	return sums(out)
}

// binary is a command, and the list of what it is made of.
func (r *release) binary(tree, arch, command, cache string) ([]file, error) {
	bin := filepath.Join(tree, "bin", arch, command)
	if err := r.compile(tree, arch, command, bin, cache); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	contents, err := r.contents(command, bin, data)
	if err != nil {
		return nil, err
	}
	return []file{{"bin/" + command, 0o755, data}, {docs + command + ".cdx.json", 0o644, contents}}, nil
}

// tarball is to be unpacked below /usr/local, without its first directory.
func (r *release) tarball(name string, all []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	head := func(path string, kind byte, mode, size int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: kind, Name: name + "/" + path, Mode: mode, Size: size, ModTime: r.when, Uname: "root", Gname: "root", Format: tar.FormatUSTAR})
	}
	for _, d := range append([]string{""}, parents(all)...) {
		if d != "" {
			d += "/"
		}
		if err := head(d, tar.TypeDir, 0o755, 0); err != nil {
			return nil, err
		}
	}
	for _, f := range all {
		if err := head(f.path, tar.TypeReg, int64(f.mode), int64(len(f.data))); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return pack(b.Bytes())
}

// pack lays the files out and has nfpm make the packages of them.
func (r *release) pack(tree, arch string, all []file, out string) error {
	if len(r.packages) == 0 {
		return nil
	}
	stage := filepath.Join(tree, "packaging", "stage-"+arch)
	for _, f := range all {
		path := filepath.Join(stage, f.path)
		if err := put(path, f.data, f.mode); err != nil {
			return err
		}
	}
	if err := r.date(filepath.Dir(stage)); err != nil {
		return err
	}
	for _, p := range r.packages {
		cmd := exec.Command(r.nfpm, "package", "--config", "../nfpm.yaml", "--packager", p, "--target", out+"."+p)
		cmd.Dir = stage
		cmd.Env = append(os.Environ(), "ARCH="+arch, "VERSION="+r.version, "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.when.Unix(), 10))
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nfpm %s for %s: %v\n%s", p, arch, err, text)
		}
	}
	return nil
}

// date gives all below a directory the commit's time, where nfpm looks for one.
func (r *release) date(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, r.when, r.when)
	})
}

// sums writes the checksums of a directory's files, as sha256sum does.
func sums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return put(filepath.Join(dir, sumsName), []byte(b.String()), 0o644)
}

// same compares two directories byte for byte, and names every file that differs.
func same(a, b string) error {
	var differ []string
	names := map[string]bool{}
	for _, dir := range []string{a, b} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	for name := range names {
		x, errX := os.ReadFile(filepath.Join(a, name))
		y, errY := os.ReadFile(filepath.Join(b, name))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			differ = append(differ, name)
		}
	}
	if slices.Sort(differ); len(differ) > 0 {
		return fmt.Errorf("made twice, and not the same: %s", strings.Join(differ, " "))
	}
	return nil
}
