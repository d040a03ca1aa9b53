package compat

import (
	"embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func TestMain(m *testing.M) { testkit.Main(m) }

//go:embed testdata
var testdata embed.FS

func source(t *testing.T, name string) string {
	t.Helper()
	return testkit.Source(t, testdata, name)
}

// onHost puts a program where every user can read it and returns its path.
func onHost(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(testkit.Dir(t), filepath.Base(name))
	if err := os.WriteFile(path, []byte(source(t, name)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// run starts a program of testdata the way its kind is given to run.
func run(t *testing.T, who testkit.Who, name string, flags []string, args ...string) testkit.Output {
	t.Helper()
	if strings.HasSuffix(name, ".c") {
		return testkit.RunC(t, testkit.Opts{Who: who}, flags, source(t, name), args...)
	}
	testkit.Requires(t, map[string]string{".py": "python3", ".js": "node", ".sh": "bash"}[filepath.Ext(name)])
	list := append(append([]string{}, flags...), onHost(t, name))
	return testkit.Run(t, testkit.Opts{Who: who}, append(list, args...)...)
}

// passed wants a last line that is last, exit code 0 and an outcome to match.
func passed(t *testing.T, o testkit.Output, last string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.Stdout, "\n"), "\n")
	got := lines[len(lines)-1]
	if got != last || o.Exit != 0 || o.Result.Outcome != result.Exited {
		t.Errorf("exit %d, outcome %q, last line %q, want %q\nstdout: %s\nstderr: %s", o.Exit, o.Result.Outcome, got, last, o.Stdout, o.Stderr)
	}
}
