package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Edit is a change of the one place in a file that holds Old.
type Edit struct{ File, Old, New string }

// Mutant builds the command from a copy of the source with changes, and returns
// its path. Faults are put in this way, so that no release has a hook for them.
func Mutant(t testing.TB, edits ...Edit) string {
	t.Helper()
	Requires(t, "go")
	root, to := Root(t), Dir(t)
	for _, d := range []string{"go.mod", "go.sum", "cmd", "internal", "pkg", "rootfs", "seccomp-profiles"} {
		if text, err := exec.Command("cp", "-r", filepath.Join(root, d), to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, text)
		}
	}
	for _, e := range edits {
		path := filepath.Join(to, e.File)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), e.Old); n != 1 {
			t.Fatalf("%s has %d places with %q, want 1", e.File, n, e.Old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.Old, e.New, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(to, "mutant")
	build := exec.Command("go", "build", "-trimpath", "-o", out, "./cmd/sandglass")
	build.Dir, build.Env = to, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the change does not build: %v\n%s", err, text)
	}
	return out
}
