package unpack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sandglass/pkg/image"
)

// settingsText is an image's own words, with layers.
func settingsText(layers [][]byte, edit func(*settings)) []byte {
	s := settings{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	s.Config.Cmd = []string{"/bin/sh"}
	for _, l := range layers {
		s.RootFS.DiffIDs = append(s.RootFS.DiffIDs, image.Digest(l))
	}
	if edit != nil {
		edit(&s)
	}
	text, err := json.Marshal(&s)
	if err != nil {
		panic(err)
	}
	return text
}

// dockerArchive is what docker save writes.
func dockerArchive(t testing.TB, layers [][]byte, edit func(*settings)) []byte {
	t.Helper()
	config := settingsText(layers, edit)
	name := strings.TrimPrefix(image.Digest(config), image.DigestPrefix) + ".json"
	list := []item{file(name, string(config))}
	var names []string
	for i, l := range layers {
		names = append(names, fmt.Sprintf("%d/layer.tar", i))
		list = append(list, file(names[i], string(l)))
	}
	text, _ := json.Marshal([]saved{{Config: name, RepoTags: []string{"sandbox-image:latest"}, Layers: names}})
	return archive(t, append(list, file("manifest.json", string(text)))...)
}

// layout is an OCI layout, as files.
func layout(layers [][]byte, edit func(*settings)) map[string]string {
	files := map[string]string{"oci-layout": `{"imageLayoutVersion":"1.0.0"}`}
	add := func(text []byte, p *platform) descriptor {
		d := descriptor{Digest: image.Digest(text), Size: int64(len(text)), Platform: p}
		name, _ := blob(d.Digest)
		files[name] = string(text)
		return d
	}
	m := manifest{Config: add(settingsText(layers, edit), nil)}
	for _, l := range layers {
		m.Layers = append(m.Layers, add(l, nil))
	}
	text, _ := json.Marshal(&m)
	text, _ = json.Marshal(&manifest{Manifests: []descriptor{add(text, &platform{runtime.GOOS, runtime.GOARCH})}})
	files["index.json"] = string(text)
	return files
}

func layoutArchive(t testing.TB, files map[string]string) []byte {
	var list []item
	for name, text := range files {
		list = append(list, file(name, text))
	}
	return archive(t, list...)
}

// All forms of one image are one image.
func TestForms(t *testing.T) {
	layers := [][]byte{archive(t, file("bin/a", "1"), file("b", "2")), archive(t, file(".wh.b", ""), file("c", "3"))}
	const want = `bin/ bin/a:1 c:1`
	onDisk := t.TempDir()
	for name, text := range layout(layers, nil) {
		path := filepath.Join(onDisk, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	metas := map[string]string{}
	for form, in := range map[string][]byte{"docker": dockerArchive(t, layers, nil), "oci archive": layoutArchive(t, layout(layers, nil)), "oci directory": nil} {
		var u *Unpacked
		var got string
		var err error
		if in != nil {
			u, got, err = bring(t, in)
		} else if u, err = Import(onDisk, limits(), memory{}); err == nil {
			got = shown(u.Tree)
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", form, got, err, want)
			continue
		}
		text, _ := json.Marshal(&u.Meta)
		metas[string(text)] = form
	}
	if len(metas) != 1 {
		t.Errorf("the forms differ: %v", metas)
	}
}

// What an image says of itself is compared with what it is, and bounded.
func TestHostileImages(t *testing.T) {
	one := archive(t, file("a", "1"))
	two := archive(t, file("a", "2"))
	swap := func(files map[string]string, from, to []byte) map[string]string {
		name, _ := blob(image.Digest(from))
		files[name] = string(to)
		return files
	}
	cyclic := layout([][]byte{one}, nil)
	self, _ := json.Marshal(&manifest{Manifests: []descriptor{{Digest: image.Digest([]byte("self"))}}})
	name, _ := blob(image.Digest([]byte("self")))
	cyclic[name], cyclic["index.json"] = string(self), string(self)
	long := layout([][]byte{one}, nil)
	text := []byte(`{"manifests":[]}`)
	for range 6 {
		d := image.Digest(text)
		n, _ := blob(d)
		long[n] = string(text)
		text = []byte(`{"manifests":[{"digest":"` + d + `"}]}`)
	}
	long["index.json"] = string(text)
	both := layout([][]byte{one}, nil)
	both["index.json"] = strings.Replace(both["index.json"], `"layers":null`, `"layers":[{}]`, 1)
	hide := func(s string) string { return strings.TrimPrefix(image.Digest([]byte(s)), image.DigestPrefix) }
	var names []item
	for i := range 300 {
		names = append(names, file(fmt.Sprintf("%d/", i)+strings.Repeat("n/", 240)+"x", ""))
	}
	large := func(s *settings) { s.Config.User = strings.Repeat("x", 300000) }
	edited := func(edit func(*settings)) []byte { return dockerArchive(t, [][]byte{one}, edit) }
	for name, c := range map[string]struct {
		in   []byte
		want string // the beginning
	}{
		"wrong layer, docker":  {edited(func(s *settings) { s.RootFS.DiffIDs[0] = image.Digest(two) }), "layer 1: unpacked it is " + image.Digest(one)},
		"wrong layer, OCI":     {layoutArchive(t, swap(layout([][]byte{one}, nil), one, two)), "layer 1: unpacked it is " + image.Digest(two)},
		"wrong settings":       {layoutArchive(t, swap(layout([][]byte{one}, nil), settingsText([][]byte{one}, nil), settingsText([][]byte{one}, func(s *settings) { s.Config.User = "x" }))), "blobs/sha256/"},
		"a list of itself":     {layoutArchive(t, cyclic), "blobs/sha256/" + hide("self") + ": it is " + image.Digest(self)},
		"a list and an image":  {layoutArchive(t, both), "index.json is a list of images and an image at once"},
		"lists without end":    {layoutArchive(t, long), "index.json: 4 lists lead to each other and to no image"},
		"a layer too few":      {edited(func(s *settings) { s.RootFS.DiffIDs = nil }), "1 layers, and the settings name 0"},
		"too many layers":      {dockerArchive(t, [][]byte{one, one, one, one, one, one, one, one, one}, nil), "9 layers, more than 8"},
		"settings of 100 MB":   {edited(large), hide(string(settingsText([][]byte{one}, large))) + ".json: 300219 bytes, more than 262144"},
		"another machine":      {edited(func(s *settings) { s.Architecture = "s390x" }), "it is for linux/s390x, and this machine is linux/" + runtime.GOARCH},
		"another system":       {edited(func(s *settings) { s.OS = "windows" }), "it is for windows/"},
		"a variable's name":    {edited(func(s *settings) { s.Config.Env = []string{"=x"} }), "the settings: =x is no variable"},
		"a NUL":                {edited(func(s *settings) { s.Config.Cmd = []string{"a\x00b"} }), `the settings: "a\x00b" has a NUL byte`},
		"a relative directory": {edited(func(s *settings) { s.Config.WorkingDir = "../x" }), "the settings: the working directory ../x is not an absolute path"},
		"too large an environment": {edited(func(s *settings) {
			s.Config.Env = []string{"A=" + strings.Repeat("x", 50000), "B=" + strings.Repeat("x", 60000)}
		}), "the settings: 110014 bytes of environment and arguments, more than 102400"},
		"two images":             {archive(t, file("manifest.json", `[{},{}]`)), "manifest.json: it holds 2 images"},
		"no JSON":                {archive(t, file("manifest.json", `[`)), "manifest.json: unexpected end of JSON input"},
		"names of no part":       {archive(t, append(names, file("manifest.json", `[{}]`))...), "more than 128000 bytes of names and links"},
		"a list of 60000 images": {archive(t, file("manifest.json", "["+strings.Repeat("{},", 60000)+"{}]")), "manifest.json: more than 50000 values"},
		"a list twice":           {archive(t, file("manifest.json", `[{}]`), file("manifest.json", `[{}]`)), "manifest.json: it is in the archive more than once"},
		"a part that is missing": {archive(t, file("manifest.json", `[{"Config":"../../etc/passwd","Layers":[]}]`)), "../../etc/passwd: it is not in the archive"},
	} {
		_, got, err := bring(t, c.in)
		if err == nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

// A directory is taken as it is: nothing is followed.
func TestFolder(t *testing.T) {
	d := t.TempDir()
	os.MkdirAll(filepath.Join(d, "etc"), 0o755)
	os.WriteFile(filepath.Join(d, "etc/hosts"), []byte("x"), 0o600)
	os.Symlink("/run/systemd/resolv.conf", filepath.Join(d, "etc/resolv.conf"))
	os.Symlink("/etc", filepath.Join(d, "elsewhere"))
	u, err := Import(d, limits(), memory{})
	if err != nil {
		t.Fatal(err)
	}
	// The names that the sandbox has its own files for are there, and are files.
	const want = `elsewhere->/etc etc/ etc/hostname:0 etc/hosts:1 etc/nsswitch.conf:0 etc/resolv.conf:0`
	if got := shown(u.Tree); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := strings.Join(u.Meta.Notes.First, "; "); got != "/etc/resolv.conf was no file, and is an empty one" {
		t.Errorf("notes: %q", got)
	}
	f, _ := os.Create(filepath.Join(d, "sparse"))
	f.Truncate(1 << 40)
	f.Close()
	if _, err := Import(d, limits(), memory{}); err == nil || !strings.HasSuffix(err.Error(), "sparse: more than 1073741824 bytes") {
		t.Errorf("a terabyte of a hole: %v", err)
	}
}
