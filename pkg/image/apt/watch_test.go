package apt

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sandglass/pkg/image/child"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// An apt-get that waits for ever for one of its own is ended; one that writes, however
// slowly, or ends by itself is not.
func TestStuckIsEnded(t *testing.T) {
	top := t.TempDir()
	lock, err := openLock(top)
	if err != nil {
		t.Fatal(err)
	}
	a := &Apt{dir: filepath.Join(top, "host"), debs: filepath.Join(top, archives), lock: lock}
	defer a.Close()
	if err := os.MkdirAll(a.dir+partial, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		script   string
		patience time.Duration
		want     error
	}{
		{"sleep 1000 & wait", 100 * time.Millisecond, errStuck},
		{"exit 0", time.Minute, nil}, // a busy machine needs more than a moment for its start
	} {
		a.patience = c.patience
		if err := a.watched(exec.Command("/bin/sh", "-c", c.script)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.script, err, c.want)
		}
	}
	before := a.progress()
	if err := os.WriteFile(a.dir+partial+"/list", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := a.progress(); after == before {
		t.Errorf("a list that grows is no progress: %q", after)
	}
	if text := "Write error - write (28: No space left on device)"; !noSpace(text) || noSpace("Hash Sum mismatch") {
		t.Errorf("%s is not taken for a full disk", text)
	}
}
