package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// edit is a change of one place of the source.
type edit struct{ file, old, new string }

// mutation takes one control away. The tests must then fail, each of them.
type mutation struct {
	control string
	edits   []edit
	pkg     string // below integration, "" for escape; or one of pkg/..., whose own tests then fail
	fail    []string
}

// unit says that the tests are those of a package of the source, not of the binaries.
func (m *mutation) unit() bool { return strings.Contains(m.pkg, "/") }

// dir is where the tests are.
func (m *mutation) dir() string {
	switch {
	case m.pkg == "":
		return "integration/escape"
	case m.unit():
		return m.pkg
	}
	return "integration/" + m.pkg
}

// unread keeps the supervisor's own read-back, which would refuse the run, from
// standing in for the test. Each change is made together with it.
var unread = edit{"pkg/launch/check.go", "func (rb *ReadBack) Check() error {\n", "func (rb *ReadBack) Check() error {\n\tif true {\n\t\treturn nil\n\t}\n"}

// noLandlock keeps the second opinion from standing in for the first.
var noLandlock = edit{"pkg/boxinit/landlock.go", "const leastABI = 2", "const leastABI = 1000"}

// TestEachControlTakenAway builds sandglass without each control in turn and
// sees the control's tests fail. It takes minutes, so it runs on demand.
func TestEachControlTakenAway(t *testing.T) {
	if os.Getenv("SANDGLASS_MUTATE") == "" {
		testkit.Skip(t, "SANDGLASS_MUTATE=1", "it unset")
	}
	testkit.Requires(t, "root", "userns", "gcc")
	root, copied := testkit.Root(t), testkit.Dir(t)
	copySource(t, root, copied)
	only := os.Getenv("SANDGLASS_MUTATE") // 1, or a part of a control's name
	for _, m := range mutations {
		if only != "1" && !strings.Contains(m.control, only) {
			continue
		}
		t.Run(strings.ReplaceAll(m.control, " ", "_"), func(t *testing.T) {
			m.try(t, root, copied)
		})
	}
}

func (m *mutation) try(t *testing.T, root, copied string) {
	for _, e := range append([]edit{unread}, m.edits...) {
		path := filepath.Join(copied, e.file)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(before), e.old); n != 1 {
			t.Fatalf("%s has %d places with %q, want 1: bring the table up to date", e.file, n, e.old)
		}
		defer os.WriteFile(path, before, 0o644)
		if err := os.WriteFile(path, []byte(strings.Replace(string(before), e.old, e.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", copied, "./cmd/sandglass", "./cmd/sandglass-image", "./cmd/sandglass-mcp")
	build.Dir, build.Env = copied, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the change does not build: %v\n%s", err, text)
	}
	for _, test := range m.fail {
		if m.passes(t, root, copied, test) {
			t.Errorf("%s passes without: %s", test, m.control)
		}
	}
}

// TestTableOfControlsApplies: the source still has each place that the table
// changes. What it then comes to is TestEachControlTakenAway's.
func TestTableOfControlsApplies(t *testing.T) {
	root := testkit.Root(t)
	for _, m := range mutations {
		for _, e := range append([]edit{unread}, m.edits...) {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if n := strings.Count(string(text), e.old); err != nil || n != 1 {
				t.Errorf("%s: %s has %d places with %q, want 1 (%v)", m.control, e.file, n, e.old, err)
			}
		}
	}
}

// passes runs one test against the binaries without the control, or in the source
// without it.
func (m *mutation) passes(t *testing.T, root, copied, test string) bool {
	t.Helper()
	dir := root
	if m.unit() {
		dir = copied
	}
	cmd := exec.Command("go", "test", "-count=1", "-run", "^"+test+"$", "-v", "./"+m.dir())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), testkit.EnvBinary+"="+copied+"/sandglass", testkit.EnvImageTool+"="+copied+"/sandglass-image",
		testkit.EnvMCPServer+"="+copied+"/sandglass-mcp", testkit.EnvPatience+"=15s")
	text, err := cmd.CombinedOutput()
	if strings.Contains(string(text), "[build failed]") {
		t.Fatalf("the tests do not build: %s", text)
	}
	if strings.Contains(string(text), "no tests to run") || !strings.Contains(string(text), "=== RUN   "+test) {
		t.Fatalf("there is no test %s in %s: %s", test, m.dir(), text)
	}
	if testing.Verbose() {
		for line := range strings.Lines(string(text)) {
			if err != nil && strings.Contains(line, "_test.go:") {
				t.Logf("%s: %s", test, strings.TrimSpace(line))
				break
			}
		}
	}
	return err == nil
}

// copySource copies what the build needs.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	for _, d := range []string{"go.mod", "go.sum", "cmd", "internal", "pkg", "rootfs", "seccomp-profiles"} {
		if text, err := exec.Command("cp", "-r", filepath.Join(from, d), to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, text)
		}
	}
}
