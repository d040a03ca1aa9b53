// Package manifest is what a built image says it is made of: the packages, each
// with the digest of its archive, and the digest of each file with the package
// that it came from. It lies beside the image's list of files, and the image's
// digest stands for it.
package manifest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// Package is a package by name, version and architecture, and the SHA-256 of its archive.
type Package struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	Sum          string `json:"sha256"`
}

// Line is the package in a manifest and in a lock.
func (p Package) Line() string {
	return fmt.Sprintf("package %s %s %s %s\n", p.Name, p.Version, p.Architecture, p.Sum)
}

// File is one file of the image.
type File struct {
	Sum     string `json:"sha256"`
	Package string `json:"package"` // whose it is; Ours for what the build made, Host for the host's
	Path    string `json:"path"`
}

// Whose a file is that is of no package.
const (
	Ours = "-"
	Host = "host"
)

// Manifest is all of it.
type Manifest struct {
	Origin   string // recipe NAME, or host NAME...
	Packages []Package
	Files    []File
}

const head = "sandglass manifest 1\n"

// Text is the manifest as it is kept.
func (m *Manifest) Text() []byte {
	var b bytes.Buffer
	b.WriteString(head + "from " + m.Origin + "\n")
	for _, p := range m.Packages {
		b.WriteString(p.Line())
	}
	for _, f := range m.Files {
		b.WriteString("file " + f.Sum + " " + f.Package + " " + strconv.Quote(f.Path) + "\n")
	}
	return b.Bytes()
}

// Parse reads one. It was written by us, but a disk can lie.
func Parse(text string) (*Manifest, error) {
	m := &Manifest{}
	rest, ok := strings.CutPrefix(text, head)
	if !ok {
		return nil, refusal.Newf("the manifest: it does not begin as one")
	}
	for n := 2; rest != ""; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if !m.line(line) {
			return nil, refusal.Newf("the manifest: line %d is not one of a manifest", n)
		}
	}
	return m, nil
}

func (m *Manifest) line(line string) bool {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "from":
		m.Origin = rest
		return rest != ""
	case "package":
		p, ok := ParsePackage(line)
		m.Packages = append(m.Packages, p)
		return ok
	case "file":
		f := strings.SplitN(rest, " ", 3)
		if len(f) != 3 || !isSum(f[0]) {
			return false
		}
		path, err := strconv.Unquote(f[2])
		m.Files = append(m.Files, File{Sum: f[0], Package: f[1], Path: path})
		return err == nil
	}
	return false
}

// ParsePackage reads a package's line.
func ParsePackage(line string) (Package, bool) {
	f := strings.Split(line, " ")
	if len(f) != 5 || f[0] != "package" || !isSum(f[4]) || f[1] == "" || f[2] == "" || f[3] == "" {
		return Package{}, false
	}
	return Package{Name: f[1], Version: f[2], Architecture: f[3], Sum: f[4]}, true
}

func isSum(s string) bool { return image.IsDigest(image.DigestPrefix + s) }
