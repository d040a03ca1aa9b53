package check

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep: what a killed check left goes, what a living one has laid out and
// what is not ours stays.
func TestSweep(t *testing.T) {
	home, tmp := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", tmp)
	living, err := layOut()
	if err != nil {
		t.Fatal(err)
	}
	defer living.remove()
	canary := filepath.Join(home, canaryPrefix+"dead")
	dir := filepath.Join(tmp, dirPrefix+"1234")
	link := filepath.Join(home, canaryPrefix+"link")
	target := filepath.Join(home, "target")
	for _, err := range []error{
		os.WriteFile(canary, nil, 0o600), os.Mkdir(dir, 0o700), os.WriteFile(dir+"/x", nil, 0o600),
		os.WriteFile(target, nil, 0o600), os.Symlink(target, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	young := filepath.Join(home, canaryPrefix+"f00d")
	if err := os.WriteFile(young, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Names that people choose.
	report, notes := filepath.Join(tmp, dirPrefix+"report.json"), filepath.Join(home, canaryPrefix+"notes")
	if err := errors.Join(os.WriteFile(report, nil, 0o600), os.WriteFile(notes, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * settled)
	for _, path := range append([]string{canary, dir, living.dir, report, notes}, living.files...) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	removed := Sweep()
	slices.Sort(removed)
	if want := []string{canary, dir}; !slices.Equal(removed, want) && !slices.Equal(removed, []string{dir, canary}) {
		t.Errorf("removed %q, want %q", removed, want)
	}
	for _, path := range []string{canary, dir} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range append([]string{link, target, young, report, notes, living.dir}, living.files...) {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s is gone", path)
		}
	}
	files, lay := living.files, living.dir
	living.remove()
	for _, path := range append(files, lay) {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left behind", path)
		}
	}
}
