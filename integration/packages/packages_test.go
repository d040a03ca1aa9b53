package packages

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandglass/internal/testkit"
)

var arches = []string{"amd64", "arm64"}

// dist makes everything once. make dist makes it twice and compares.
var dist = sync.OnceValues(func() (string, error) {
	const dir = "build/dist-test"
	cmd := exec.Command("go", "run", "./packaging/dist", "-once", "-out", dir)
	cmd.Dir = "../.."
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v\n%s", err, text)
	}
	return filepath.Join(cmd.Dir, dir), nil
})

// made is the directory with what make dist makes, and what its names begin with.
func made(t *testing.T) (dir, prefix string) {
	t.Helper()
	testkit.Requires(t, "go", "git")
	root := testkit.Root(t)
	if err := exec.Command("git", "-C", root, "-c", "safe.directory=*", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("SKIP(want a checkout of git, have none)")
	}
	dir, err := dist()
	if err != nil && strings.Contains(err.Error(), "go install nfpm") {
		testkit.Skip(t, "nfpm", strings.Join(strings.Fields(err.Error()), " "))
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(dir + "/*-linux-amd64.tar.gz")
	if err != nil || len(list) != 1 {
		t.Fatalf("tarballs: %q, %v", list, err)
	}
	return dir, strings.TrimSuffix(filepath.Base(list[0]), "amd64.tar.gz")
}

// expected are the files of a package below /usr, and their modes.
func expected(t *testing.T, format string) map[string]int64 {
	t.Helper()
	want := map[string]int64{
		"bin/sandglass": 0o755, "bin/sandglass-image": 0o755, "bin/sandglass-mcp": 0o755,
		"share/bash-completion/completions/sandglass":    0o644,
		"share/zsh/site-functions/_sandglass":            0o644,
		"share/fish/vendor_completions.d/sandglass.fish": 0o644,
		"share/sandglass/apparmor/sandglass":             0o644,
	}
	if format == "deb" {
		delete(want, "share/zsh/site-functions/_sandglass")
		want["share/zsh/vendor-completions/_sandglass"] = 0o644
	}
	for _, verb := range []string{"", "-run", "-check", "-doctor", "-plan", "-profile", "-session", "-mcp", "-image", "-sweep", "-version"} {
		want["share/man/man1/sandglass"+verb+".1.gz"] = 0o644
	}
	list := []string{"README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "NOTICE", "copyright", "sandglass.cdx.json", "sandglass-image.cdx.json", "sandglass-mcp.cdx.json",
		"examples/README.md", "examples/sandglass-example.service", "seccomp-profiles/README.md"}
	pages, err := os.ReadDir(filepath.Join(testkit.Root(t), "docs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		list = append(list, "docs/"+p.Name())
	}
	for _, name := range list {
		want["share/doc/sandglass/"+name] = 0o644
	}
	return want
}

// Each package has these files and no other, owned by root, with these modes,
// and the same bytes as the tarball.
func TestContentsOfPackages(t *testing.T) {
	dir, prefix := made(t)
	for _, arch := range arches {
		root := "/" + prefix + arch
		tarball := open(t, filepath.Join(dir, prefix+arch+".tar.gz"))
		compare(t, tarball, root, expected(t, "tar"), nil)
		for _, format := range []string{"deb", "rpm", "apk"} {
			a := open(t, filepath.Join(dir, prefix+arch+"."+format))
			compare(t, a, "/usr", expected(t, format), func(name string) string {
				return tarball.files[root+"/"+strings.Replace(name, "vendor-completions/_", "site-functions/_", 1)].sha256
			})
			describe(t, a, format, arch)
		}
	}
}

func compare(t *testing.T, a *archive, root string, want map[string]int64, sum func(name string) string) {
	t.Helper()
	for name, mode := range want {
		e, ok := a.files[root+"/"+name]
		if !ok || e.dir || e.mode != mode || e.owner != "0:0 root:root" {
			t.Errorf("%s: there %v, %+v, want mode %o and root", name, ok, e, mode)
		}
		if sum != nil && e.sha256 != sum(name) {
			t.Errorf("%s differs from the tarball's", name)
		}
	}
	for name, e := range a.files {
		if _, ok := want[strings.TrimPrefix(name, root+"/")]; !ok && !e.dir {
			t.Errorf("%s was not expected", name)
		}
		if e.dir && (e.mode != 0o755 || e.owner != "0:0 root:root") {
			t.Errorf("directory %s: %+v", name, e)
		}
	}
}

// describe checks the words about a package, and that its scripts are those of
// the tree.
func describe(t *testing.T, a *archive, format, arch string) {
	t.Helper()
	for _, script := range []string{"postinst", "prerm"} {
		text, err := os.ReadFile(filepath.Join(testkit.Root(t), "packaging/scripts", script))
		if err != nil {
			t.Fatal(err)
		}
		name := script
		if format == "apk" {
			name = map[string]string{"postinst": ".post-install", "prerm": ".pre-deinstall"}[script]
		}
		if got := a.meta[name]; strings.TrimSpace(got) != strings.TrimSpace(string(text)) {
			t.Errorf("%s %s: %s is\n%s", format, arch, name, got)
		}
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	var control string
	var want []string
	switch format {
	case "deb":
		control, want = a.meta["control"], []string{"Package: sandglass\n", "Architecture: " + arch + "\n", "Section: utils\n"}
	case "apk":
		control, want = a.meta[".PKGINFO"], []string{"pkgname = sandglass\n", "arch = " + machine + "\n", "license = Apache-2.0\n"}
	case "rpm":
		control, want = fmt.Sprintf("%s.%s\n", a.meta["name"], a.meta["arch"]), []string{"sandglass." + machine + "\n"}
	}
	for _, w := range want {
		if !strings.Contains(control, w) {
			t.Errorf("%s %s: no %q in\n%s", format, arch, w, control)
		}
	}
	if strings.Contains(control, "Depends") || strings.Contains(control, "depend = ") {
		t.Errorf("%s %s depends on something:\n%s", format, arch, control)
	}
}

// An owned directory goes with the package; one of the system's own is nobody's,
// or its mode would be in conflict with the system's.
func TestDirectoriesOfPackages(t *testing.T) {
	dir, prefix := made(t)
	for name := range open(t, filepath.Join(dir, prefix+"amd64.rpm")).files {
		if path.Dir(name) == "/usr" || path.Dir(name) == "/usr/share" && path.Base(name) != "sandglass" {
			t.Errorf("the rpm owns %s", name)
		}
	}
}

func TestSums(t *testing.T) {
	dir, prefix := made(t)
	names := []string{strings.TrimSuffix(prefix, "-linux-") + ".tgz"}
	for _, arch := range arches {
		for _, kind := range []string{".apk", ".cdx.json", ".deb", ".rpm", ".tar.gz"} {
			names = append(names, prefix+arch+kind)
		}
	}
	for _, kind := range []string{"sandglass-*-py3-none-any.whl", "sandglass-*[0-9].tar.gz"} {
		list, err := filepath.Glob(filepath.Join(dir, kind))
		list = slices.DeleteFunc(list, func(p string) bool { return strings.Contains(p, "-linux-") })
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %q, %v", kind, list, err)
		}
		names = append(names, filepath.Base(list[0]))
	}
	slices.Sort(names)
	var want strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(data), name)
	}
	got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil || string(got) != want.String() {
		t.Errorf("%v\n got\n%s\nwant\n%s", err, got, want.String())
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != len(names)+1 {
		t.Errorf("%d files, want %d: %v", len(list), len(names)+1, err)
	}
}

// The list of contents names what go.mod names of it, with the licence that its
// own file has.
func TestListOfContents(t *testing.T) {
	dir, prefix := made(t)
	text, err := os.ReadFile(filepath.Join(dir, prefix+"arm64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		BOMFormat, SpecVersion, SerialNumber string
		Metadata                             struct {
			Component struct {
				Name, Version string
				Licenses      []struct{ License struct{ ID string } }
				Hashes        []struct{ Alg, Content string }
			}
		}
		Components []struct {
			Name, Version, PURL string
			Licenses            []struct{ License struct{ ID string } }
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	own := b.Metadata.Component
	tarball := open(t, filepath.Join(dir, prefix+"arm64.tar.gz"))
	if b.BOMFormat != "CycloneDX" || b.SpecVersion != "1.5" || own.Name != "sandglass" || prefix != "sandglass-"+own.Version+"-linux-" ||
		own.Licenses[0].License.ID != "Apache-2.0" || own.Hashes[0].Alg != "SHA-256" || own.Hashes[0].Content != tarball.files["/"+prefix+"arm64/bin/sandglass"].sha256 {
		t.Errorf("%s", text)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}", "./cmd/sandglass")
	cmd.Dir, cmd.Env = testkit.Root(t), append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64", "GOFLAGS=")
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	goVersion, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	std := strings.Fields(string(goVersion))
	want := map[string]string{"std": std[0] + " " + std[1]}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) == 3 {
			want[f[0]] = f[1] + " " + f[2]
		}
	}
	got := map[string]string{}
	for _, c := range b.Components {
		version, at, _ := strings.Cut(want[c.Name], " ")
		got[c.Name] = c.Version + " " + at
		licence, err := os.ReadFile(filepath.Join(at, "LICENSE"))
		if err != nil || c.Version != version || c.PURL != "pkg:golang/"+c.Name+"@"+version || c.Licenses[0].License.ID != "BSD-3-Clause" ||
			!strings.Contains(string(licence), "Neither the name of Google") || strings.Contains(string(licence), "advertising materials") {
			t.Errorf("%+v, %v, licence %s", c, err, licence)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("it lists %v, want %v", got, want)
	}
	if d := b.Dependencies; len(d) != len(want)+1 || d[0].Ref != "sandglass" || len(d[0].DependsOn) != len(want) {
		t.Errorf("dependencies %+v", d)
	}
}

// Other eyes than ours on the .deb.
func TestDpkgReadsIt(t *testing.T) {
	testkit.Requires(t, "dpkg-deb")
	dir, prefix := made(t)
	deb := filepath.Join(dir, prefix+"arm64.deb")
	text, err := exec.Command("dpkg-deb", "-c", deb).Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0][0] == '-' {
			names = append(names, strings.TrimPrefix(f[5], "./usr/"))
		}
		if f[1] != "root/root" || strings.ContainsAny(f[0], "sStT") {
			t.Errorf("%s", line)
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(expected(t, "deb"))); !slices.Equal(names, want) {
		t.Errorf("got %q\nwant %q", names, want)
	}
}
