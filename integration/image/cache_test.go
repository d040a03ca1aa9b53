package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/testkit"
)

// downloads are the packages that are kept.
func (h *home) downloads() (list []string) {
	h.t.Helper()
	found, err := filepath.Glob(h.dir + "/cache/sandglass/packages/archives/*.deb")
	must(h.t, err)
	for _, f := range found {
		name, _, _ := strings.Cut(filepath.Base(f), "_")
		list = append(list, name)
	}
	return list
}

// Downloads that no build uses go away by themselves, those of the last build stay,
// and the caller can have all of them removed, but not below a build.
func TestDownloadsArePruned(t *testing.T) {
	m := greeting(t)
	h := newHome(t, testkit.AsUser(t))
	recipe := h.recipe(greetingRecipe)
	args := append(m.flags(), recipe)
	id := h.build(args...)
	used := []string{"greeting-data", "greeting", "scripted"} // in the order of the files' names
	archives := h.dir + "/cache/sandglass/packages/archives"
	month := time.Now().Add(-31 * 24 * time.Hour)
	age := func() {
		found, err := filepath.Glob(archives + "/*.deb")
		must(t, err)
		for _, f := range append(found, archives+"/other_1_all.deb") {
			must(t, os.WriteFile(archives+"/other_1_all.deb", []byte("x"), 0o644))
			must(t, os.Chtimes(f, month, month))
		}
	}
	age()
	h.build(args...) // which uses its own, and so keeps them
	if got := h.downloads(); !slices.Equal(got, used) {
		t.Errorf("after a build: %q, want %q", got, used)
	}
	h.says(0, "", "prune")
	if got := h.downloads(); !slices.Equal(got, used) {
		t.Errorf("after a prune: %q, want %q", got, used)
	}
	age()
	if exit, out, errs := h.image("prune"); exit != 0 || out != "0 images and 0 unused contents removed\n4 files of downloaded packages removed, "+strings.SplitAfter(out, "removed, ")[1] {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	if got := h.downloads(); len(got) > 0 {
		t.Errorf("after a month: %q", got)
	}
	if again := h.build(args...); again != id {
		t.Errorf("built again: %s and %s", id, again)
	}
	lock, err := os.Open(filepath.Dir(archives) + "/lock")
	must(t, err)
	defer lock.Close()
	must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)) // as a build does
	h.says(0, "", "prune")
	h.says(125, "sandglass: error: "+filepath.Dir(archives)+": a build uses it\nhint: sandglass image prune --cache   # again, when the build has ended\n", "prune", "--cache")
	must(t, lock.Close())
	h.says(0, "", "prune", "--cache")
	left, err := os.ReadDir(filepath.Dir(archives))
	must(t, err)
	var names []string
	for _, l := range left {
		names = append(names, l.Name())
	}
	if !slices.Equal(names, []string{"archives", "lock"}) || len(h.downloads()) > 0 {
		t.Errorf("left: %q, %q", names, h.downloads())
	}
	if again := h.build(args...); again != id {
		t.Errorf("built of nothing: %s and %s", id, again)
	}
}

// What a build that was killed has left half is no trouble for the next, and two at
// once take turns.
func TestDownloadsHeal(t *testing.T) {
	m := greeting(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		args := append(m.flags(), h.recipe(greetingRecipe))
		id := h.build(args...)
		top := h.dir + "/cache/sandglass/packages"
		states, err := filepath.Glob(top + "/mirror-*/state/lists")
		must(t, err)
		if len(states) != 1 {
			t.Fatalf("states: %q", states)
		}
		lists, err := filepath.Glob(states[0] + "/*_*")
		must(t, err)
		for _, l := range lists { // a directory where apt wants to write
			must(t, os.MkdirAll(states[0]+"/partial/"+filepath.Base(l)+"/x", 0o755))
			must(t, os.Remove(l))
		}
		must(t, filepath.WalkDir(states[0]+"/partial", func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(p, who.UID, who.GID)
		}))
		if again := h.build(append(args, "--name", "again")...); again != id {
			t.Errorf("%s and %s", id, again)
		}
		lock, err := os.Open(top + "/lock")
		must(t, err)
		defer lock.Close()
		must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)) // as a build does
		exit, told := h.signalled(syscall.SIGTERM, "waiting for another build, which uses "+top, func(int) {}, args...)
		if exit != 143 || len(told) != 2 {
			t.Errorf("exit %d, %q", exit, told)
		}
	})
}
