package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clients are the packages of the libraries for callers: for Python a wheel and an
// sdist, for Node a tarball. They contain text alone, and are made here rather than
// by tools whose bytes depend on their version.
func (r *release) clients(tree string) ([]file, error) {
	text := map[string][]byte{}
	for _, name := range []string{"LICENSE", "clients/README.md", "clients/python/sandglass.py", "clients/python/pyproject.toml",
		"clients/node/sandglass.mjs", "clients/node/sandglass.d.mts", "clients/node/package.json"} {
		data, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil {
			return nil, err
		}
		text[filepath.Base(name)] = data
	}
	v := pythonVersion(r.version)
	meta := fmt.Appendf(nil, "Metadata-Version: 2.1\nName: sandglass\nVersion: %s\nSummary: Run code that a model wrote in a throwaway sandbox\n"+
		"License: %s\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n%s", v, ownLicence, text["README.md"])
	wheel, err := r.wheel(v, meta, text)
	if err != nil {
		return nil, err
	}
	project, err := packaged(text["pyproject.toml"], v)
	if err != nil {
		return nil, err
	}
	sdist, err := r.tarball("sandglass-"+v, []file{
		{"LICENSE", 0o644, text["LICENSE"]}, {"PKG-INFO", 0o644, meta}, {"README.md", 0o644, text["README.md"]}, {"pyproject.toml", 0o644, project},
		{"sandglass/__init__.py", 0o644, text["sandglass.py"]}, {"sandglass/py.typed", 0o644, nil},
	})
	if err != nil {
		return nil, err
	}
	pack, err := json.Marshal(r.version)
	if err != nil {
		return nil, err
	}
	npm, err := r.tarball("package", []file{
		{"LICENSE", 0o644, text["LICENSE"]}, {"README.md", 0o644, text["README.md"]},
		{"package.json", 0o644, bytes.Replace(text["package.json"], []byte(`"0.0.0"`), pack, 1)},
		{"sandglass.d.mts", 0o644, text["sandglass.d.mts"]}, {"sandglass.mjs", 0o644, text["sandglass.mjs"]},
	})
	return []file{
		{"sandglass-" + v + "-py3-none-any.whl", 0o644, wheel}, {"sandglass-" + v + ".tar.gz", 0o644, sdist},
		{"sandglass-" + r.version + ".tgz", 0o644, npm},
	}, err
}

// packaged is the pyproject.toml of the checkout, where the library is one module, for
// a package, which can say py.typed.
func packaged(project []byte, v string) ([]byte, error) {
	text := string(project)
	for _, to := range [][2]string{
		{`version = "0.0.0"`, `version = "` + v + `"`},
		{"requires-python", "readme = \"README.md\"\nrequires-python"},
		{`py-modules = ["sandglass"]`, "packages = [\"sandglass\"]\n\n[tool.setuptools.package-data]\nsandglass = [\"py.typed\"]"},
	} {
		if strings.Count(text, to[0]) != 1 {
			return nil, fmt.Errorf("clients/python/pyproject.toml: not one %q", to[0])
		}
		text = strings.Replace(text, to[0], to[1], 1)
	}
	return []byte(text), nil
}

// pythonVersion is a version as Python's packages write it: 1.2.3rc1, and
// 0.0.0.dev20260102030405 of a development version.
func pythonVersion(v string) string {
	number, suffix, _ := strings.Cut(v, "-")
	if date, ok := strings.CutPrefix(suffix, "git"); ok {
		return number + ".dev" + date
	}
	return number + suffix
}

// wheel is a package, so that type checkers believe its annotations: one module
// alone cannot say py.typed.
func (r *release) wheel(v string, meta []byte, text map[string][]byte) ([]byte, error) {
	info := "sandglass-" + v + ".dist-info/"
	list := []file{
		{"sandglass/__init__.py", 0o644, text["sandglass.py"]},
		{"sandglass/py.typed", 0o644, nil},
		{info + "LICENSE", 0o644, text["LICENSE"]},
		{info + "METADATA", 0o644, meta},
		{info + "WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: sandglass\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
	}
	var record strings.Builder
	for _, f := range list {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	record.WriteString(info + "RECORD,,\n")
	list = append(list, file{info + "RECORD", 0o644, []byte(record.String())})

	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range list {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: r.when.UTC()}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
