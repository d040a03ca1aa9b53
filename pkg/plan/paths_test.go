package plan

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sandglass/pkg/policy"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// tempDir is a directory whose path has no links.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// The script is the file that was judged, whatever its name is by the time it
// is copied; closing the plan lets go of it.
func TestScriptIsOpenedOnce(t *testing.T) {
	dir := tempDir(t)
	must(t, os.WriteFile(dir+"/real.sh", []byte("echo judged\n"), 0o644), os.Symlink("real.sh", dir+"/a.sh"))
	p := mustBuild(t, func(s *policy.Spec) { s.Program = policy.Program{File: dir + "/a.sh"} })
	must(t, os.Remove(dir+"/real.sh"), os.Symlink("/etc/passwd", dir+"/real.sh"))
	c := p.Input.Code
	text, err := io.ReadAll(io.NewSectionReader(c.File, 0, c.Size))
	if string(text) != "echo judged\n" || err != nil || c.Name != "a.sh" || c.CopyFrom != dir+"/real.sh" {
		t.Errorf("%q, %v, %+v", text, err, c)
	}
	p.Close()
	if _, err := c.File.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the plan is closed and its file is not: %v", err)
	}
}

// What is refused leaves no descriptor open.
func TestRefusedPlanIsClosed(t *testing.T) {
	dir := tempDir(t)
	must(t, os.WriteFile(dir+"/data", []byte("no program"), 0o644), os.Mkdir(dir+"/out", 0o755))
	open := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(names)
	}
	set := func(s *policy.Spec) { s.Program, s.Out = policy.Program{File: dir + "/data"}, dir+"/out" }
	refusedWith(t, 126, "cannot tell how to run", set) // whatever is opened once and kept
	before := open()
	for range 3 {
		refusedWith(t, 126, "cannot tell how to run", set)
	}
	if got := open(); got != before {
		t.Errorf("%d descriptors, were %d", got, before)
	}
}

func TestPathsByWhatTheyAre(t *testing.T) {
	dir, home := tempDir(t), tempDir(t)
	for _, d := range []string{"/rw/sub", "/other", "/image/usr"} {
		must(t, os.MkdirAll(dir+d, 0o755))
	}
	filter := dir + "/rw/f.bpf"
	must(t, os.WriteFile(dir+"/other/file.sh", nil, 0o644), os.WriteFile(filter, nil, 0o644),
		os.Symlink("rw", dir+"/alias"), os.Symlink("../other", dir+"/rw/way"), os.Symlink(home, dir+"/home"), os.Symlink("image", dir+"/good"),
		os.Symlink("nothing", dir+"/dangling"))
	rw := []policy.Mount{{Source: dir + "/alias", Target: "/w", Write: true}}
	for _, c := range []struct {
		words string
		set   func(*policy.Spec)
	}{
		{`--out: "` + dir + `/alias" is a symbolic link, which a program could have made`, func(s *policy.Spec) { s.Out = dir + "/alias/sub" }},
		{`--out: "` + dir + `/dangling" is a symbolic link, which`, func(s *policy.Spec) { s.Out = dir + "/dangling" }},
		{`--out: "` + dir + `/rw/sub" is inside the writable mount "` + dir + `/rw"`, func(s *policy.Spec) { s.Mounts, s.Out = rw, dir+"/rw/sub" }},
		{`--out: "` + dir + `" holds the writable mount "` + dir + `/rw"`, func(s *policy.Spec) { s.Mounts, s.Out = rw, dir }},
		{`is a whole home directory`, func(s *policy.Spec) { s.Image = dir + "/home" }},
		{`is a whole home directory`, func(s *policy.Spec) { s.Venv = dir + "/home" }},
		{`is not a directory`, func(s *policy.Spec) { s.Image = dir + "/other/file.sh" }},
		{`leads out of the writable mount`, func(s *policy.Spec) { s.Mounts, s.Image = rw, dir+"/rw/way" }},
		{`leads out of the writable mount`, func(s *policy.Spec) { s.Mounts, s.Image = rw, dir+"/alias/way" }},
		{`leads out of the writable mount`, func(s *policy.Spec) { s.Mounts, s.Program = rw, policy.Program{File: dir + "/rw/way/file.sh"} }},
		{`leads out of the writable mount`, func(s *policy.Spec) {
			s.Mounts = append(rw[:1:1], policy.Mount{Source: dir + "/rw/way", Target: "/d"})
		}},
	} {
		refusedWith(t, 125, c.words, func(s *policy.Spec) { s.Home = home; c.set(s) })
	}
	p := mustBuild(t, func(s *policy.Spec) { s.Image = dir + "/good" })
	if p.Input.Root.Path != dir+"/image" || !p.Input.Root.Dir || p.Input.Root.Ino == 0 {
		t.Errorf("%+v", p.Input.Root)
	}
}

// A filter in a writable mount by another name of the directory is refused.
func TestFilterIsOutOfReach(t *testing.T) {
	dir := tempDir(t)
	must(t, os.Mkdir(dir+"/rw", 0o755), os.Symlink("rw", dir+"/alias"))
	b := &builder{plan: &Plan{Spec: policy.Default()}}
	b.plan.Spec.Mounts = []policy.Mount{{Source: dir + "/alias", Target: "/w", Write: true}}
	b.plan.Filter.Name = dir + "/rw/f.bpf"
	must(t, b.mounts())
	want := `--seccomp: "` + dir + `/rw/f.bpf" is inside the writable mount "` + dir + `/rw", where the program could replace it`
	if err := b.trusted(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	b.plan.Filter.Name = dir + "/f.bpf"
	must(t, b.trusted())
	b.plan.Filter.Name = "default"
	must(t, b.trusted())
}
