package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// home is a user's data directory, with a store in it.
type home struct {
	t   *testing.T
	who testkit.Who
	dir string
	set []string // the environment, instead of the one that names dir

	cache string // packages, "" for a directory of its own
}

func newHome(t *testing.T, who testkit.Who) *home {
	t.Helper()
	dir := testkit.Dir(t)
	if who.UID != 0 {
		if err := os.Chown(dir, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	return &home{t: t, who: who, dir: dir}
}

func (h *home) env() []string {
	if h.set != nil {
		return h.set
	}
	cache := h.cache
	if cache == "" {
		cache = h.dir + "/cache"
	}
	return []string{"XDG_DATA_HOME=" + h.dir, "XDG_CACHE_HOME=" + cache, "PATH=" + os.Getenv("PATH")}
}

// refused expects that the tool, or a run, ends with 125 and says what.
func (h *home) refused(what string, args ...string) {
	h.t.Helper()
	if exit, out, errs := h.image(args...); exit != 125 || out != "" || !strings.Contains(errs, what) {
		h.t.Errorf("%s: exit %d, %q, %q, want %q", args, exit, out, errs, what)
	}
}

// image runs sandglass-image.
func (h *home) image(args ...string) (exit int, stdout, stderr string) {
	h.t.Helper()
	cmd := exec.Command(testkit.ImageTool(h.t), args...)
	cmd.Env, cmd.Dir = h.env(), "/"
	if h.who.UID != 0 && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.who.UID), Gid: uint32(h.who.GID)}}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// bring imports an archive under a name.
func (h *home) bring(name string, text []byte) {
	h.t.Helper()
	if exit, _, errs := h.image("import", "--name", name, h.file(text)); exit != 0 {
		h.t.Fatalf("import of %s: exit %d, %s", name, exit, errs)
	}
}

// file is a file with a content, that the user may read.
func (h *home) file(text []byte) string {
	h.t.Helper()
	path := filepath.Join(testkit.Dir(h.t), "archive")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// run runs sandglass.
func (h *home) run(args ...string) testkit.Output {
	h.t.Helper()
	return testkit.Run(h.t, testkit.Opts{Who: h.who, Env: h.env()}, args...)
}

type entry struct {
	tar.Header
	body []byte
}

func file(name string, mode int64, body string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, []byte(body)}
}

func link(name, to string) entry {
	return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}, nil}
}

func archive(t *testing.T, list ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range list {
		e.Size = int64(len(e.body))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// busybox is a root with a static shell, and what else is given.
func busybox(t *testing.T, more ...entry) []byte {
	t.Helper()
	text, err := os.ReadFile(testkit.StaticBusybox(t))
	if err != nil {
		t.Fatal(err)
	}
	list := []entry{{tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o4755}, text}}
	for _, name := range []string{"sh", "cat", "echo", "env", "id", "ls", "touch", "pwd", "stat", "readlink"} {
		list = append(list, link("bin/"+name, "busybox"))
	}
	return archive(t, append(list, more...)...)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// docker is what docker save writes of layers and settings.
func docker(t *testing.T, config map[string]any, layers ...[]byte) []byte {
	t.Helper()
	var ids, names []string
	var list []entry
	for _, l := range layers {
		ids, names = append(ids, "sha256:"+digest(l)), append(names, digest(l)+"/layer.tar")
		list = append(list, file(names[len(names)-1], 0o644, string(l)))
	}
	text, err := json.Marshal(map[string]any{"os": "linux", "architecture": runtime.GOARCH, "config": config, "rootfs": map[string]any{"type": "layers", "diff_ids": ids}})
	if err != nil {
		t.Fatal(err)
	}
	name := digest(text) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{"evil:latest"}, "Layers": names}})
	if err != nil {
		t.Fatal(err)
	}
	return archive(t, append(list, file(name, 0o644, string(text)), file("manifest.json", 0o644, string(manifest)))...)
}

// lines are what a program printed.
func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
