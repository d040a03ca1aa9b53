// Package clients tests the libraries for callers under clients/ with their own
// test suites and the real binary, and the packages that make dist makes of them.
package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// interpreter is Debian's where it is there: another user may not reach the one
// that PATH leads to.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	testkit.Requires(t, name)
	if _, err := os.Stat("/usr/bin/" + name); err == nil {
		return "/usr/bin/" + name
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// copied is a directory of clients/ where everybody may read it, and beside it the hints.
func copied(t *testing.T, name string) string {
	t.Helper()
	dir := testkit.Dir(t)
	from, to := filepath.Join(testkit.Root(t), "clients", name), filepath.Join(dir, name)
	hints, err := os.ReadFile(filepath.Join(testkit.Root(t), "clients/hints.json"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "hints.json"), string(hints))
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.IsDir() {
			continue // what an interpreter keeps there
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// suite runs a test suite and returns what it says.
func suite(t *testing.T, who testkit.Who, dir, name string, args ...string) string {
	t.Helper()
	cmd := who.Command(interpreter(t, name), args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "SANDGLASS="+testkit.Binary(t), "SANDGLASS_FLAGS="+strings.Join(who.Flags(), " "))
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
	return string(text)
}

// counted compares the number of tests that a suite says it ran with those in its
// source, so that none is left out in silence.
func counted(t *testing.T, said, count, source, each string) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	want := strconv.Itoa(len(regexp.MustCompile(each).FindAllString(string(text), -1)))
	m := regexp.MustCompile(count).FindStringSubmatch(said)
	if m == nil || m[1] != want || want == "0" {
		t.Errorf("ran %q, want %s tests\n%s", m, want, said)
	}
}

func TestPython(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := copied(t, "python")
		said := suite(t, who, dir, "python3", "-B", "-W", "error", "-m", "unittest", "test_sandglass")
		counted(t, said, `(?s)Ran (\d+) tests in .*\nOK\n$`, filepath.Join(dir, "test_sandglass.py"), `(?m)^    def test_`)
	})
}

func TestNode(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := copied(t, "node")
		said := suite(t, who, dir, "node", "--test", "--test-reporter=tap", "sandglass.test.mjs")
		counted(t, said, `(?m)^# pass (\d+)$`, filepath.Join(dir, "sandglass.test.mjs"), `(?m)^test\(`)
	})
}

// TestTypesOptions: the options that the types of the Node library know are those
// that a request may have; the library itself takes whatever the session does.
func TestTypesOptions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "clients/node/sandglass.d.mts"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "interface RunOptions {")
	body, _, _ := strings.Cut(rest, "}")
	var got, want []string
	for _, m := range regexp.MustCompile(`(?m)^  (\w+)\?: `).FindAllStringSubmatch(body, -1) {
		got = append(got, strings.ToLower(regexp.MustCompile("[A-Z]").ReplaceAllString(m[1], "-$0")))
	}
	elsewhere := strings.Fields("code lang env out force interactive tty json result result-fd quiet help allow-degraded allow-mount cgroup-parent")
	for _, f := range policy.RunFlags() {
		if f.Refused == "" && f.Help != "" && !strings.HasPrefix(f.Group, "Accepted") && !slices.Contains(elsewhere, f.Name) {
			want = append(want, f.Name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the types have\n%q, want\n%q", got, want)
	}
}
