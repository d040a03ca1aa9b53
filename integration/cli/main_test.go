// Package cli tests the command line as people and tools use it: the real
// binary, as root and as an ordinary user.
package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// own is an empty directory that belongs to who.
func own(t *testing.T, who testkit.Who) string {
	t.Helper()
	d := testkit.Dir(t)
	give(t, who, d)
	return d
}

func give(t *testing.T, who testkit.Who, path string) {
	t.Helper()
	if os.Geteuid() == 0 && !who.IsRoot() {
		if err := os.Lchown(path, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
}

// put writes a file of who's and returns its path. Missing folders are made.
func put(t *testing.T, who testkit.Who, mode os.FileMode, text string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	give(t, who, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	give(t, who, path)
	return path
}

// tree lists the names below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// clean checks that a run left nothing: no cgroup of its supervisor, no process
// that carries marker, no name in dir that was not there. Either may be empty.
func clean(t *testing.T, out testkit.Output, marker, dir string, before []string) {
	t.Helper()
	if left := testkit.CgroupsLeft(t, out.PID); len(left) > 0 {
		t.Errorf("cgroups are left: %q", left)
	}
	if marker != "" {
		if left := testkit.Processes(marker); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	}
	if dir == "" {
		return
	}
	if now := tree(t, dir); !slices.Equal(now, before) {
		t.Errorf("the directory has changed:\nbefore %q\nnow    %q", before, now)
	}
}

// complaint checks the form of a refusal: nothing on stdout, on stderr exactly
// one error line, then only hints, at least one. It returns the error's text.
func complaint(t *testing.T, out testkit.Output) (what string, hints []string) {
	t.Helper()
	if out.Stdout != "" {
		t.Errorf("stdout: %q, want nothing", out.Stdout)
	}
	lines := strings.Split(strings.TrimSuffix(out.Stderr, "\n"), "\n")
	what, ok := strings.CutPrefix(lines[0], "sandglass: error: ")
	if !ok {
		t.Fatalf("stderr does not begin with an error line: %q", out.Stderr)
	}
	for _, l := range lines[1:] {
		hint, ok := strings.CutPrefix(l, "hint: ")
		if !ok || hint == "" {
			t.Errorf("stderr has a line that is no hint: %q", l)
		}
		hints = append(hints, hint)
	}
	if len(hints) == 0 {
		t.Errorf("no hint: %q", out.Stderr)
	}
	return what, hints
}
