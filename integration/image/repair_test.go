package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// says expects how the tool ends, and all that it writes to stderr.
func (h *home) says(exit int, stderr string, args ...string) {
	h.t.Helper()
	if got, out, errs := h.image(args...); got != exit || errs != stderr {
		h.t.Errorf("%s: exit %d, %q, %q; want %d, %q", args, got, out, errs, exit, stderr)
	}
}

// one is the path of a file of the store's only image.
func (h *home) one(file string) string {
	h.t.Helper()
	found, err := filepath.Glob(h.dir + "/sandglass/images/*/" + file)
	if err != nil || len(found) != 1 {
		h.t.Fatalf("%s: %q, %v", file, found, err)
	}
	return found[0]
}

// Verify ends with the command that makes a damaged image whole, and it does.
func TestVerifyTellsTheRepair(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		text := h.file(busybox(t))
		for _, c := range []struct {
			made []string
			hint string
		}{
			{[]string{"import", "--name", "x", text}, "sandglass image import --name x FILE   # what it came from: a damaged image is replaced"},
			{[]string{"from-host", "--name", "x", testkit.StaticBusybox(t)}, "sandglass image from-host " + testkit.StaticBusybox(t) + " --name x --force"},
		} {
			h.says(0, "", c.made...)
			exe, err := filepath.EvalSymlinks(h.one("rootfs/*/busybox"))
			if c.made[0] == "from-host" {
				exe, err = filepath.EvalSymlinks(h.one("rootfs" + testkit.StaticBusybox(t)))
			}
			if err == nil {
				err = os.WriteFile(exe, nil, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			h.says(1, "sandglass: error: image verify: 1 damaged\nhint: "+c.hint+"\n", "verify", "x")
			h.says(0, "", c.made...)
			h.says(0, "", "verify")
			h.says(0, "", "rm", "x")
		}
	})
}

// Where settings or a name are lost, every command says so, with what takes it away.
func TestLostSettingsAreTold(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		text := h.file(busybox(t))
		h.says(0, "", "import", "--name", "x", text)
		meta := h.one("image.json")
		id := "sha256:" + filepath.Base(filepath.Dir(meta))
		if err := os.Remove(meta); err != nil {
			t.Fatal(err)
		}
		lost := "image store " + h.dir + "/sandglass: images/" + id[7:] + "/image.json: no such file or directory"
		hint := "hint: sandglass image rm --force " + id + "   # with its names: then import or build it again\n"
		if _, out, _ := h.image("list"); !strings.HasPrefix(out, "x  ") || !strings.Contains(out, lost) {
			t.Errorf("list: %q", out)
		}
		h.says(125, "sandglass: error: "+lost+"\n"+hint, "show", "x")
		h.says(1, "sandglass: error: image verify: 1 damaged\n"+hint, "verify")
		if o := h.run("x", "true"); o.Exit != 125 || !strings.Contains(o.Stderr, lost) || !strings.Contains(o.Stderr, hint) {
			t.Errorf("run: exit %d, %s", o.Exit, o.Stderr)
		}
		h.says(0, "", "import", "--name", "x", text)
		h.says(0, "", "verify", "x")

		if err := os.WriteFile(h.dir+"/sandglass/names/x", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.says(125, "sandglass: error: image store "+h.dir+"/sandglass: names/x: it holds no digest\nhint: sandglass image rm x   # then import or build it again\n", "import", "--name", "x", text)
		h.says(0, "", "rm", "x")
		h.says(0, "", "import", "--name", "x", text)
	})
}

// A removal is of all that are named or of none, and of no more names than were meant.
func TestRemoveAllOrNothing(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		text := h.file(busybox(t))
		for _, name := range []string{"a", "b", "c:1"} {
			h.says(0, "", "import", "--name", name, text)
		}
		id := "sha256:" + filepath.Base(filepath.Dir(h.one("image.json")))
		h.says(125, "sandglass: error: there is no image nosuch\nhint: sandglass image list\n", "rm", "a", "nosuch", "b")
		h.says(125, "sandglass: error: there is no image host\nhint: sandglass image list\n", "rm", "host")
		h.says(125, "sandglass: error: image "+id+" has 3 names: a, b, c:1\nhint: sandglass image rm a   # one of them\n"+
			"hint: sandglass image rm --force "+id+"   # all of them, and the image\n", "rm", id)
		if names, err := os.ReadDir(h.dir + "/sandglass/names"); err != nil || len(names) != 3 {
			t.Errorf("%v, %v", names, err)
		}
		h.says(0, "", "rm", "a", "b", "a")
		h.says(0, "", "rm", id)
		h.says(125, "sandglass: error: there is no image "+id+"\nhint: sandglass image list\n", "rm", id)
	})
}

// TestVerifyBesideARemoval: an image that is removed after all were listed is none
// that is damaged.
func TestVerifyBesideARemoval(t *testing.T) {
	h := newHome(t, testkit.AsUser(t))
	images := h.dir + "/sandglass/images/"
	for i := range 3 {
		h.bring(fmt.Sprint("x", i), archive(t, file("f", 0o644, fmt.Sprint(i))))
	}
	all, err := os.ReadDir(images)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	var locks []*os.File
	var waits []string
	for _, e := range all { // whichever is looked at first
		f, err := os.Open(images + e.Name() + "/image.json")
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_EX), unix.Fstat(int(f.Fd()), &st)); err != nil {
			t.Fatal(err)
		}
		locks, waits = append(locks, f), append(waits, fmt.Sprint(":", st.Ino, " "))
	}
	ended := make(chan string, 1)
	go func() {
		exit, out, errs := h.image("verify")
		ended <- fmt.Sprint(exit, " ", out, errs)
	}()
	testkit.Eventually(t, "verify has its list, and waits for an image", func() bool {
		text, err := os.ReadFile("/proc/locks")
		return err == nil && slices.ContainsFunc(strings.Split(string(text), "\n"), func(l string) bool {
			return strings.Contains(l, "-> FLOCK") && slices.ContainsFunc(waits, func(w string) bool { return strings.Contains(l, w) })
		})
	})
	for _, e := range all[1:] { // as rm does
		if err := os.Rename(images+e.Name(), h.dir+"/sandglass/tmp/"+e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range locks {
		f.Close()
	}
	if got, want := <-ended, "0 sha256:"+all[0].Name()+": 1 files are as they were\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
