package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// shown is the one program in a language that a page shows.
func shown(t *testing.T, page, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile("(?ms)"+pattern).FindAllStringSubmatch(string(text), -1)
	if len(list) != 1 {
		t.Fatalf("%s: %d programs, want 1", page, len(list))
	}
	return list[0][1]
}

const (
	pythonFence = "^```python\n(.*?)^```$"
	nodeFence   = "^```js\n(.*?)^```$"
	toolOfPage  = "^cat >tool.py <<'END'\n(.*?)^END$"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// npmLike is the Node library where an import of its name finds it, with the program of the page.
func npmLike(t *testing.T) string {
	t.Helper()
	dir := testkit.Dir(t)
	if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied(t, "node"), filepath.Join(dir, "node_modules/sandglass")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "shown.mjs"), shown(t, "clients/README.md", nodeFence))
	return dir
}

// TestShown runs what clients/README.md shows; integration/cli runs README.md.
func TestShown(t *testing.T) {
	testkit.Requires(t, "root")
	for name, dir := range map[string]string{"python3": copied(t, "python"), "node": npmLike(t)} {
		path := "shown.mjs"
		if name == "python3" {
			path = "shown.py"
			put(t, filepath.Join(dir, path), shown(t, "clients/README.md", pythonFence))
		}
		cmd := exec.Command(interpreter(t, name), path)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SANDGLASS="+testkit.Binary(t))
		if text, err := cmd.CombinedOutput(); err != nil || string(text) != "42\n exited 0\n" {
			t.Errorf("%s: %v, %q", name, err, text)
		}
	}
}

// TestTypes compiles what a caller of the Node library would write.
func TestTypes(t *testing.T) {
	testkit.Requires(t, "tsc")
	for dir, path := range map[string]string{copied(t, "node"): "types.test.ts", npmLike(t): "shown.mjs"} {
		cmd := exec.Command("tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext",
			"--lib", "es2022,dom", "--allowJs", "--checkJs", path)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("tsc: %v\n%s", err, text)
		}
	}
}

// TestTypesOfPython has mypy look at the Python library, and at what a caller would write.
func TestTypesOfPython(t *testing.T) {
	testkit.Requires(t, "mypy")
	dir := copied(t, "python")
	put(t, filepath.Join(dir, "shown.py"), shown(t, "clients/README.md", pythonFence))
	put(t, filepath.Join(dir, "tool.py"), shown(t, "README.md", toolOfPage))
	cmd := exec.Command("mypy", "--strict", "--python-version", "3.9", "--cache-dir", "/dev/null",
		"sandglass.py", "types_check.py", "shown.py", "tool.py")
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "Success: no issues found in 4 source files\n") {
		t.Errorf("mypy: %v\n%s", err, text)
	}
}
