package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// systemd finds nothing to complain of in the example.
func TestUnit(t *testing.T) {
	testkit.Requires(t, "systemd-analyze")
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "packaging/systemd/sandglass-example.service"))
	if err != nil {
		t.Fatal(err)
	}
	const installed = "ExecStart=/usr/bin/sandglass "
	if strings.Count(string(text), installed) != 1 {
		t.Fatalf("no %q", installed)
	}
	unit := filepath.Join(testkit.Dir(t), "sandglass-example.service")
	verify := func(text string) string {
		if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
		if err != nil {
			return err.Error() + "\n" + string(out)
		}
		return string(out)
	}
	good := strings.Replace(string(text), installed, "ExecStart="+testkit.Binary(t)+" ", 1)
	if got := verify(good); got != "" {
		t.Error(got)
	}
	if got := verify(strings.Replace(good, "UMask=", "UMsk=", 1)); !strings.Contains(got, "UMsk") {
		t.Errorf("systemd-analyze sees no mistake: %q", got)
	}
}
