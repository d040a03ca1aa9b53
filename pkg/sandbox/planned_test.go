package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// TestPlannedOnce: a run that no waiting sandbox could take is made of what was
// judged, however many were tried, and not of what is at its paths by then.
func TestPlannedOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"file": "judged\n", "other": "planned again\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := sandbox.Default()
	spec.Program.Command = []string{"cat", "file"}
	spec.Files = []policy.File{{Name: "file", Source: filepath.Join(dir, "file")}}
	a, err := sandbox.Plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, end := context.WithCancel(t.Context())
		held, err := sandbox.Prepare(ctx, spec, "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !held.Fits(a) || !held.Fresh() {
			t.Fatal("it does not fit")
		}
		end()
		<-held.Over()
		if _, began, err := held.Run(t.Context(), a); began || err != nil {
			t.Fatalf("began %v, %v", began, err)
		}
	}
	res, err := a.Run(t.Context())
	if err != nil || res.Stdout.Text != "judged\n" || res.Warm || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
