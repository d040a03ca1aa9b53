package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// checkout is a tree of git's with one commit of a known time.
func checkout(t *testing.T, changelog string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP(want git, have no git on PATH)")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	dir := t.TempDir()
	write(t, dir, "CHANGELOG.md", changelog)
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "one")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@localhost"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL=/dev/null")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, text)
	}
	return strings.TrimSpace(string(text))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDevelopmentVersion(t *testing.T) {
	dir := checkout(t, "## Unreleased\n\n- x\n")
	commit := git(t, dir, "rev-parse", "--short=12", "HEAD")
	r, err := decide(dir, "")
	if err != nil || r.version != "0.0.0-git20260102030405" || r.stamp != r.version+"+"+commit || !r.when.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Fatalf("%+v, %v", r, err)
	}
	git(t, dir, "tag", "v1.2.3") // of a clean tree it is the release, which the changelog lacks
	if r, err := decide(dir, ""); err == nil || !strings.Contains(err.Error(), "no section ## 1.2.3") {
		t.Errorf("%+v, %v", r, err)
	}
	write(t, dir, "more", "")
	if r, err := decide(dir, ""); err != nil || r.stamp != "0.0.0-git20260102030405+"+commit+".dirty" {
		t.Errorf("%+v, %v", r, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if r, err := decide(dir, ""); err != nil || r.version != "0.0.0-git19700102000000" {
		t.Errorf("%+v, %v", r, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "soon")
	if _, err := decide(dir, ""); err == nil || !strings.HasPrefix(err.Error(), "SOURCE_DATE_EPOCH is not a time") {
		t.Errorf("%v", err)
	}
}

func TestRelease(t *testing.T) {
	dir := checkout(t, "# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-02)\n\n- x\n\n## 1.2.2\n\n## 1.2.1-rc1\n\n- y\n")
	for version, want := range map[string]string{
		"1.2.3":     "",
		"v1.2.3":    "",
		"1.2.1-rc1": "",
		"1.2.2":     "CHANGELOG.md has no section ## 1.2.2, or nothing in it",
		"1.2":       `"1.2" is no version such as 1.2.3 or 1.2.3-rc1`,
		"1.2.3;id":  `"1.2.3;id" is no version such as 1.2.3 or 1.2.3-rc1`,
		"":          "CHANGELOG.md has no section ## Unreleased, or nothing in it",
	} {
		r, err := decide(dir, version)
		if got := message(err); got != want || err == nil && (r.version != strings.TrimPrefix(version, "v") || r.stamp != r.version) {
			t.Errorf("%q: %+v, %q, want %q", version, r, got, want)
		}
	}
	git(t, dir, "tag", "v1.2.3")
	if r, err := decide(dir, ""); err != nil || r.version != "1.2.3" {
		t.Errorf("by its tag: %+v, %v", r, err)
	}
	write(t, dir, "CHANGELOG.md", "## 1.2.3\n\n- z\n")
	if _, err := decide(dir, "1.2.3"); !strings.HasPrefix(message(err), "a release of a tree with changes that are not committed") {
		t.Errorf("%v", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Only what is tracked is exported, as it is now, and no link leads elsewhere.
func TestExport(t *testing.T) {
	dir := checkout(t, "one\n")
	write(t, dir, "CHANGELOG.md", "two\n")
	write(t, dir, "scratch.go", "package x\n")
	to := t.TempDir()
	if err := export(dir, to); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(to)
	text, _ := os.ReadFile(filepath.Join(to, "CHANGELOG.md"))
	if err != nil || len(list) != 1 || string(text) != "two\n" {
		t.Errorf("%v, %v, %q", list, err, text)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "link")
	if err := export(dir, t.TempDir()); message(err) != "link is no regular file" {
		t.Errorf("%v", err)
	}
}

func TestSame(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		write(t, dir, "x", "1")
	}
	if err := same(a, b); err != nil {
		t.Error(err)
	}
	write(t, b, "x", "2")
	if err := same(a, b); message(err) != "made twice, and not the same: x" {
		t.Errorf("%v", err)
	}
	write(t, b, "x", "1")
	write(t, b, "y", "")
	if err := same(a, b); message(err) != "made twice, and not the same: y" {
		t.Errorf("%v", err)
	}
}

// What a tarball says of a file is told by the table alone.
func TestTarball(t *testing.T) {
	r := &release{when: time.Unix(1234567890, 0)}
	files := []file{{"bin/x", 0o755, []byte("1")}, {"share/doc/y", 0o644, nil}}
	packed, err := r.tarball("n", files)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil || z.Name != "" || !z.ModTime.IsZero() {
		t.Fatalf("%v, %+v", err, z)
	}
	var names []string
	in := tar.NewReader(z)
	for h, err := in.Next(); err == nil; h, err = in.Next() {
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.ModTime.Unix() != 1234567890 {
			t.Errorf("%+v", h)
		}
	}
	if got := strings.Join(names, " "); got != "n/ n/bin/ n/share/ n/share/doc/ n/bin/x n/share/doc/y" {
		t.Errorf("%s", got)
	}
}

// A module whose licence nobody has looked at fails the release. This test's own
// binary has none but the standard library.
func TestUnknownLicence(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "1.2.3"}
	if _, err := r.contents("sandglass", self, nil); err != nil && !strings.Contains(err.Error(), "licence") {
		t.Fatal(err)
	}
	known := licences["std"]
	delete(licences, "std")
	defer func() { licences["std"] = known }()
	if _, err := r.contents("sandglass", self, nil); message(err) != "the binary contains std, whose licence packaging/dist does not know" {
		t.Errorf("%v", err)
	}
}

// What the packages of the libraries say of their version, and that nothing of the
// clock is in them.
func TestClients(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc1": "1.2.3rc1", "0.0.0-git20260102030405": "0.0.0.dev20260102030405"} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
	r := &release{version: "1.2.3-rc1", when: time.Unix(1234567890, 0)}
	list, err := r.clients("../..")
	if err != nil || len(list) != 3 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	wheel, err := zip.NewReader(bytes.NewReader(list[0].data), int64(len(list[0].data)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range wheel.File {
		names = append(names, f.Name)
		if f.Modified.Unix() != 1234567890 || f.Mode() != 0o644 {
			t.Errorf("%s: %v %v", f.Name, f.Modified, f.Mode())
		}
	}
	want := "sandglass/__init__.py sandglass/py.typed sandglass-1.2.3rc1.dist-info/LICENSE sandglass-1.2.3rc1.dist-info/METADATA " +
		"sandglass-1.2.3rc1.dist-info/WHEEL sandglass-1.2.3rc1.dist-info/RECORD"
	if got := strings.Join(names, " "); list[0].path != "sandglass-1.2.3rc1-py3-none-any.whl" || got != want {
		t.Errorf("%s: %s", list[0].path, got)
	}
	for i, in := range map[int]string{1: `version = "1.2.3rc1"`, 2: `"version": "1.2.3-rc1"`} {
		z, err := gzip.NewReader(bytes.NewReader(list[i].data))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Contains(text, []byte(in)) {
			t.Errorf("%s: no %s, %v", list[i].path, in, err)
		}
	}
}
