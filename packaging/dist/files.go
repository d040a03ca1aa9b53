package main

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sandglass/packaging/manual"
)

// file is one file of every archive and package.
type file struct {
	path string // below the prefix, which is /usr in packages
	mode fs.FileMode
	data []byte
}

const (
	docs     = "share/doc/sandglass/"
	bashPath = "share/bash-completion/completions/sandglass"
	zshPath  = "share/zsh/site-functions/_sandglass"
	fishPath = "share/fish/vendor_completions.d/sandglass.fish"
	// Not in /etc: postinst puts it there, where it is understood.
	profilePath = "share/sandglass/apparmor/sandglass"
)

// commands are the binaries, sandglass itself the last.
var commands = []string{"sandglass-mcp", "sandglass-image", "sandglass"}

// documents are files of the tree that go to the documents, by their patterns.
var documents = []string{"README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "NOTICE", "docs/*", "examples/README.md", "seccomp-profiles/README.md"}

// files are all but the binary and its contents, in order.
func (r *release) files(tree string) ([]file, error) {
	list := []file{
		{bashPath, 0o644, []byte(manual.Bash())},
		{zshPath, 0o644, []byte(manual.Zsh())},
		{fishPath, 0o644, []byte(manual.Fish())},
	}
	for _, p := range manual.Pages(r.version, r.when.Format("2006-01-02")) {
		packed, err := pack([]byte(p.Text))
		if err != nil {
			return nil, err
		}
		list = append(list, file{"share/man/man1/" + p.Name + ".gz", 0o644, packed})
	}
	from := map[string]string{
		profilePath: "packaging/apparmor/sandglass",
		docs + "examples/sandglass-example.service": "packaging/systemd/sandglass-example.service",
		docs + "copyright":                          "packaging/copyright",
	}
	for _, pattern := range documents {
		found, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			rel := strings.TrimPrefix(f, tree+"/")
			from[docs+rel] = rel
		}
	}
	for to, source := range from {
		data, err := os.ReadFile(filepath.Join(tree, source))
		if err != nil {
			return nil, err
		}
		list = append(list, file{to, 0o644, data})
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return list, nil
}

// pack is gzip without a name and a time.
func pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// parents are the directories of files, each before what is in it.
func parents(list []file) (dirs []string) {
	for _, f := range list {
		for d := path.Dir(f.path); d != "."; d = path.Dir(d) {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}
