package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// onDisk reads a directory as an archive.
func onDisk(t *testing.T, root string) *archive {
	t.Helper()
	a := &archive{files: map[string]entry{}}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{dir: d.IsDir(), mode: int64(info.Mode().Perm()), owner: "0:0 root:root"} // it is the caller's
		if info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != 0 || !e.dir && !info.Mode().IsRegular() {
			t.Errorf("%s is %v", path, info.Mode())
		}
		if !e.dir {
			e.sha256 = sum(t, path)
		}
		a.files[strings.TrimPrefix(path, root)] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// make install puts the files of a package below its prefix, with the same bytes,
// in the place of older ones, and under a strict umask; make uninstall removes
// these and nothing else.
func TestMakeInstall(t *testing.T) {
	testkit.Requires(t, "make")
	dir, prefix := made(t)
	tarball := open(t, filepath.Join(dir, prefix+"amd64.tar.gz"))
	bin, dest := testkit.Dir(t), testkit.Dir(t)
	for name, from := range map[string]string{"sandglass": testkit.Binary(t), "sandglass-image": testkit.ImageTool(t), "sandglass-mcp": testkit.MCPServer(t)} {
		if err := os.Symlink(from, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	call := func(target string) {
		t.Helper()
		// -o build: the binaries are there.
		cmd := exec.Command("sh", "-c", `umask 077; exec make -o build "$@"`, "sh", target, "DESTDIR="+dest, "PREFIX=/opt/x", "BIN="+bin)
		cmd.Dir = testkit.Root(t)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, text)
		}
	}
	other := filepath.Join(dest, "opt/x/share/man/man1/other.1")
	old := filepath.Join(dest, "opt/x/bin/sandglass")
	for _, path := range []string{other, old} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	call("install")

	want := expected(t, "tar")
	delete(want, "share/doc/sandglass/sandglass.cdx.json") // they tell of other binaries
	delete(want, "share/doc/sandglass/sandglass-image.cdx.json")
	delete(want, "share/doc/sandglass/sandglass-mcp.cdx.json")
	got := onDisk(t, filepath.Join(dest, "opt"))
	delete(got.files, "/x/share/man/man1/other.1")
	compare(t, got, "/x", want, func(name string) string {
		switch name {
		case "bin/sandglass":
			return sum(t, testkit.Binary(t))
		case "bin/sandglass-image":
			return sum(t, testkit.ImageTool(t))
		case "bin/sandglass-mcp":
			return sum(t, testkit.MCPServer(t))
		case profileName:
			return got.files["/x/"+name].sha256 // see below
		}
		return tarball.files["/"+prefix+"amd64/"+name].sha256
	})
	text, err := os.ReadFile(filepath.Join(dest, "opt/x", profileName))
	if err != nil || !strings.Contains(string(text), "\nprofile sandglass \"/opt/x/bin/sandglass\" flags=(unconfined) {\n") || strings.Contains(string(text), "/usr/bin") {
		t.Errorf("the profile is for another path: %v\n%s", err, text)
	}
	if out := command(t, old, "version"); !strings.HasPrefix(out, "sandglass ") {
		t.Errorf("version: %q", out)
	}

	call("uninstall")
	var left []string
	for name, e := range onDisk(t, dest).files {
		if !e.dir || strings.Contains(name, "sandglass") {
			left = append(left, name)
		}
	}
	if !slices.Equal(left, []string{"/opt/x/share/man/man1/other.1"}) {
		t.Errorf("left: %q", left)
	}
}

const profileName = "share/sandglass/apparmor/sandglass"
