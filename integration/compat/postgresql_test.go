package compat

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandglass/internal/testkit"
)

var postgresql = program{file: "postgresql.sh", needs: "bash", start: withServer,
	want: "CREATE TABLE\nINSERT 0 100\n5050\nserver stopped\n"}

// TestPostgreSQL makes a cluster on the scratch, starts it and asks it.
func TestPostgreSQL(t *testing.T) { each(t, []program{postgresql}) }

// withServer mounts the server that hack/setup.sh compat has unpacked, from
// where an ordinary user may enter.
func withServer(t *testing.T, _ testkit.Who, file string) []string {
	t.Helper()
	from := filepath.Join(testkit.Root(t), "build/postgresql")
	if _, err := os.Stat(from); err != nil {
		testkit.Skip(t, "postgresql", "no build/postgresql")
	}
	to := filepath.Join(testkit.Dir(t), "postgresql")
	if out, err := exec.Command("cp", "-r", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	return []string{"-v", to + ":/opt/postgresql", file}
}
