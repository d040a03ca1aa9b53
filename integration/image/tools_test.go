package image

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// shown is what show says of an image.
type shown struct {
	ID    string
	Image struct {
		Tree         string
		Files, Links int
		Config       struct{ Env, Entrypoint, Cmd []string }
		Skipped      struct{ First []string }
	}
}

// imported imports what a tool has made, and says what it is.
func (h *home) imported(name, path string) (s shown) {
	h.t.Helper()
	if exit, _, errs := h.image("import", "--force", "--name", name, path); exit != 0 {
		h.t.Fatalf("import of %s: exit %d, %s", path, exit, errs)
	}
	_, out, errs := h.image("show", "--json", name)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		h.t.Fatalf("show: %v, %s%s", err, out, errs)
	}
	return s
}

// me is who runs the tests, and can read what their tools make.
func me(t *testing.T) testkit.Who {
	if os.Getuid() == 0 {
		return testkit.AsRoot(t)
	}
	return testkit.AsUser(t)
}

// tool runs a program that makes something to import.
func tool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, text)
	}
}

// Every form of tar that GNU tar and bsdtar write is the same image as the directory
// that it was made of.
func TestFormsOfTar(t *testing.T) {
	h := newHome(t, me(t))
	dir, out := testkit.Dir(t), testkit.Dir(t)
	for name, text := range map[string]string{"bin/x": "#!/bin/sh\n", "d/empty": "", "d/umlaut-ä": "1", "d/a b\nc": "2"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sparse, err := os.Create(dir + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	for at, text := range map[int64]string{0: "begin", 1 << 20: "middle", 3<<20 - 3: "end"} {
		if _, err := sparse.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{sparse.Close(), os.Chmod(dir+"/bin/x", 0o4755), os.Symlink("bin/x", dir+"/link"), os.Link(dir+"/bin/x", dir+"/hard"), unix.Mkfifo(dir+"/fifo", 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := h.imported("dir", dir)
	try := func(name string, args ...string) {
		t.Helper()
		path := filepath.Join(out, name+".tar")
		tool(t, dir, append([]string{args[0], "-cf", path}, append(args[1:], ".")...)...)
		got := h.imported("tar", path)
		if got.Image.Tree != want.Image.Tree {
			_, list, _ := h.image("show", "tar")
			t.Errorf("%s: %s\nwant %+v", name, list, want)
		}
		if s := strings.Join(got.Image.Skipped.First, " "); s != "FIFO fifo" && s != "FIFO ./fifo" {
			t.Errorf("%s: left out %q", name, s)
		}
	}
	t.Run("GNU", func(t *testing.T) {
		testkit.Requires(t, "tar")
		for _, f := range []string{"v7", "oldgnu", "gnu", "ustar", "pax"} {
			if f != "v7" { // which has no FIFO
				try(f, "tar", "--format="+f)
			}
		}
		for _, f := range []string{"--format=gnu", "--format=pax --sparse-version=0.0", "--format=pax --sparse-version=0.1", "--format=pax --sparse-version=1.0"} {
			try("sparse"+strings.ReplaceAll(f, " ", ""), append([]string{"tar", "-S"}, strings.Fields(f)...)...)
		}
		if err := os.Remove(dir + "/fifo"); err != nil {
			t.Fatal(err)
		}
		tool(t, dir, "tar", "--format=v7", "-cf", out+"/v7.tar", "bin", "d", "link", "hard", "sparse")
		v7 := h.imported("tar", out+"/v7.tar")
		if v7.Image.Files != want.Image.Files || v7.Image.Links != want.Image.Links {
			t.Errorf("v7: %+v, want the files of %+v", v7, want)
		}
		if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("bsdtar", func(t *testing.T) {
		testkit.Requires(t, "bsdtar")
		want = h.imported("dir", dir) // the FIFO has changed its directory
		for _, f := range []string{"ustar", "pax", "gnutar"} {
			try("bsd-"+f, "bsdtar", "--format="+f)
		}
	})
}

// What podman, which builds as buildah does, saves in each of its forms is one image,
// which runs as it says.
func TestImagesOfPodman(t *testing.T) {
	testkit.Requires(t, "root", "podman")
	h := newHome(t, testkit.AsRoot(t))
	dir := testkit.Dir(t)
	tool(t, dir, "cp", testkit.StaticBusybox(t), dir+"/busybox")
	recipe := "FROM scratch\nCOPY busybox /bin/busybox\nCOPY --chown=7:8 Containerfile /srv/a\nENV A=b\nWORKDIR /srv\nENTRYPOINT [\"/bin/busybox\"]\nCMD [\"ls\",\"/srv\"]\n"
	if err := os.WriteFile(dir+"/Containerfile", []byte(recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	podman := func(args ...string) {
		t.Helper()
		tool(t, dir, append([]string{"podman", "--root", dir + "/store", "--runroot", dir + "/run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"}, args...)...)
	}
	podman("build", "--isolation", "chroot", "--layers", "-t", "made", ".")
	ids := map[string]string{}
	for _, form := range []string{"docker-archive", "oci-archive", "oci-dir", "docker-dir"} {
		podman("save", "--format", form, "-o", dir+"/"+form, "made")
		got := h.imported(form, dir+"/"+form)
		ids[got.ID] += form + " "
		if o := h.run(form); o.Exit != 0 || o.Stdout != "a\n" {
			t.Errorf("%s: exit %d, %q (%s)", form, o.Exit, o.Stdout, o.Stderr)
		}
	}
	if len(ids) != 1 {
		t.Errorf("the forms differ: %v", ids)
	}
}

// So is what go-containerregistry writes, by whichever compression, as one of a list
// for several machines, and flattened.
func TestImagesOfGoContainerregistry(t *testing.T) {
	testkit.Requires(t, "go")
	h := newHome(t, me(t))
	dir := testkit.Dir(t)
	build := exec.Command("go", "build", "-o", dir+"/ggcr", ".")
	build.Dir, build.Env = filepath.Join(testkit.Root(t), "integration/image/ggcr"), append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(text), "dial tcp") || strings.Contains(string(text), "GOPROXY") {
			testkit.Skip(t, "go-containerregistry", "no way to load it")
		}
		t.Fatalf("%v\n%s", err, text)
	}
	tool(t, dir, dir+"/ggcr", testkit.StaticBusybox(t), dir)
	ids, trees := map[string]string{}, map[string]string{}
	for _, how := range []string{"gzip", "zstd", "none"} {
		for _, form := range []string{".tar", ".oci"} {
			got := h.imported("x", filepath.Join(dir, how+form))
			ids[got.ID] += how + form + " "
			trees[got.Image.Tree] += how + form + " "
			if o := h.run("x"); o.Exit != 0 || o.Stdout != "b\nc\n" {
				t.Errorf("%s%s: exit %d, %q (%s)", how, form, o.Exit, o.Stdout, o.Stderr)
			}
		}
		root := h.imported("x", filepath.Join(dir, how+".root.tar"))
		trees[root.Image.Tree] += how + ".root.tar "
	}
	if len(ids) != 1 || len(trees) != 1 {
		t.Errorf("the forms differ: %v\n%v", ids, trees)
	}
}
