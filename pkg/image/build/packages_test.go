package build

import (
	"archive/tar"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
	"sandglass/pkg/image/tree"
)

// shelf has packages as lists of entries.
type shelf map[string][]tar.Header

func (s shelf) Contents(p manifest.Package, read func(io.Reader) error) error {
	return read(archive(s[p.Name]...))
}

// archive makes entries; the content of a file is its name.
func archive(list ...tar.Header) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range list {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			panic(err)
		}
		if h.Typeflag == tar.TypeReg {
			io.WriteString(w, h.Name)
		}
	}
	w.Close()
	return &b
}

func reg(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }

// try builds by a recipe, and lists what is in the image but for what all have.
func try(t *testing.T, text string, from shelf, run Run) ([]string, error) {
	t.Helper()
	r, err := recipe.Parse("x", text, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	var list []manifest.Package
	for _, w := range r.Packages {
		list = append(list, manifest.Package{Name: w.Name, Version: "1"})
	}
	u, err := Recipe(r, list, from, digests{}, run)
	if err != nil {
		return nil, err
	}
	var got []string
	err = u.Tree.Walk(func(name string, n *tree.Node) error {
		if n.Mode&0o7000 != 0 {
			t.Errorf("%s has mode %o", name, n.Mode)
		}
		if n.Kind != tree.Dir && !strings.HasPrefix(name, "etc/") && strings.Contains(name, "/") {
			got = append(got, strings.TrimSpace(name+" "+n.Target))
		}
		return nil
	})
	return got, err
}

func TestPackagesTogether(t *testing.T) {
	suid := reg("./bin/su")
	suid.Mode = 0o6755
	from := shelf{
		"aa": {suid, {Typeflag: tar.TypeDir, Name: "./lib/", Mode: 0o2775}, reg("./lib/x/one"), {Typeflag: tar.TypeLink, Name: "./usr/bin/second", Linkname: "./bin/su"},
			{Typeflag: tar.TypeChar, Name: "./usr/null"}, {Typeflag: tar.TypeSymlink, Name: "./usr/share/real", Linkname: "/usr/lib/x"}, reg("./usr/share/doc/aa")},
		"bb": {{Typeflag: tar.TypeDir, Name: "./usr/share/real/", Mode: 0o755}, reg("./usr/share/real/two"), reg("../../upwards")},
	}
	got, err := try(t, "package aa *\npackage bb *\nlink su /bin/third\n", from, nil)
	want := []string{"usr/bin/second", "usr/bin/su", "usr/bin/third su", "usr/lib/x/one", "usr/lib/x/two", "usr/share/real /usr/lib/x"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	for text, want := range map[string]string{
		"package aa *\nlink nothing /bin/x":           "recipe x: link /bin/x: there is no /bin/nothing in the image",
		"package aa *\nlink second /bin/su":           "recipe x: link /bin/su: the image has something else there",
		"package aa *\nlink su /usr/lib":              "recipe x: link /usr/lib: the image has something else there",
		"package aa *\njoin /no/* /etc/x":             "recipe x: join /no/*: nothing is called so",
		"package aa *\ncacerts /usr/bin/su /etc/x":    "recipe x: su: it holds no certificate",
		"package aa *\nremove /usr/bin/su":            "usr/bin/second is a second name of ./bin/su, which is left out",
		"package aa *\nbytecode /usr/lib/python*":     "recipe x: bytecode: no directory is called so",
		"package aa *\njoin /usr/bin/su /usr/share/a": "",
	} {
		if _, err := try(t, text, from, nil); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What a package's Python says is bytecode is taken beside a module and nowhere else.
func TestBytecode(t *testing.T) {
	from := shelf{"aa": {reg("usr/lib/python3.11/a.py"), reg("usr/lib/python3.11/sub/b.py"), reg("usr/lib/python3/c.py"), reg("usr/bin/d.py")}}
	const text = "package aa *\nbytecode /usr/lib/python3*\n"
	var asked []string
	with := func(names ...string) ([]string, error) {
		return try(t, text, from, func(_ *tree.Tree, argv []string, read func(io.Reader) error) error {
			asked = argv[len(argv)-2:]
			var list []tar.Header
			for _, n := range names {
				list = append(list, reg(n))
			}
			return read(archive(list...))
		})
	}
	got, err := with("/usr/lib/python3.11/__pycache__/a.cpython-311.pyc", "/usr/lib/python3.11/sub/__pycache__/b.cpython-311.pyc")
	want := []string{"usr/bin/d.py", "usr/lib/python3/c.py", "usr/lib/python3.11/__pycache__/a.cpython-311.pyc", "usr/lib/python3.11/a.py",
		"usr/lib/python3.11/sub/__pycache__/b.cpython-311.pyc", "usr/lib/python3.11/sub/b.py"}
	if err != nil || !slices.Equal(got, want) || !slices.Equal(asked, []string{"/usr/lib/python3", "/usr/lib/python3.11"}) {
		t.Errorf("%q of %q, want %q (%v)", got, asked, want, err)
	}
	for _, bad := range []string{
		"/usr/lib/python3.11/__pycache__/x.cpython-311.pyc", "/usr/lib/python3.11/a.py", "/usr/bin/__pycache__/d.cpython-311.pyc", "/usr/bin/sh",
		"/usr/lib/python3.11/__pycache__/../../../bin/__pycache__/d.pyc", "/usr/lib/python3.11/__pycache__/a.py", "/etc/passwd",
	} {
		if _, err := with(bad); err == nil || !strings.HasSuffix(err.Error(), "is of no module") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
