package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build makes a seccompc that links libseccomp, for tests that themselves are
// built without. Where that cannot be had the test is skipped, unless
// SANDGLASS_MUST_RUN lists seccompc: then it fails.
func build(t *testing.T) string {
	t.Helper()
	skip := t.Skipf
	if strings.Contains(","+os.Getenv("SANDGLASS_MUST_RUN")+",", ",seccompc,") {
		skip = t.Fatalf
	}
	for _, tool := range []string{"go", "gcc", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip("SKIP(want %s)", tool)
		}
	}
	if err := exec.Command("pkg-config", "--exists", "libseccomp").Run(); err != nil {
		skip("SKIP(want libseccomp's headers, apt-get install libseccomp-dev)")
	}
	bin := filepath.Join(t.TempDir(), "seccompc")
	cmd := exec.Command("go", "build", "-tags", "libseccomp", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestCheckedInFiltersAreFresh compiles the profiles anew, twice for
// determinism, and compares with what is checked in.
func TestCheckedInFiltersAreFresh(t *testing.T) {
	bin := build(t)
	sources, err := filepath.Glob("../../seccomp-profiles/*.json")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no profiles: %v", err)
	}
	for range 2 {
		out, err := exec.Command(bin, append([]string{"-all", "-check"}, sources...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func TestCompileAndCheck(t *testing.T) {
	bin := build(t)
	dir := t.TempDir()
	source := filepath.Join(dir, "my.json")
	text := strings.Replace(planned, `"write","read"`, `"write","read","execve","exit_group"`, 1)
	write(t, source, text)
	call := func(want string, args ...string) {
		t.Helper()
		out, _ := exec.Command(bin, args...).CombinedOutput()
		if got := strings.ReplaceAll(string(out), dir, "DIR"); !strings.HasPrefix(got, want) {
			t.Errorf("%v: got %swant %s", args, got, want)
		}
	}
	call("DIR/my.amd64.bpf: ", "-all", source)
	call("DIR/my.amd64.bpf: ", "-all", "-check", source)
	call("", "-q", "-arch", "amd64", "-o", filepath.Join(dir, "other.bpf"), source)
	one, two := read(t, filepath.Join(dir, "my.amd64.bpf")), read(t, filepath.Join(dir, "other.bpf"))
	if len(one) == 0 || !bytes.Equal(one, two) {
		t.Error("-o and -all differ")
	}
	write(t, source, strings.Replace(text, `"read",`, ``, 1))
	call("seccompc: error: DIR/my.json: DIR/my.amd64.bpf is not what this profile compiles to\nhint: ", "-all", "-check", source)
	write(t, source, planned)
	call("seccompc: error: DIR/my.json: amd64: the compiled filter does not allow execve", "-all", source)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	write(t, bad, `{"defaultActoin":""}`)
	for _, c := range []struct {
		name, args, stdout, stderr string
		code                       int
	}{
		{"help", "-h", "usage: seccompc", "", 0},
		{"nothing", "", "", "seccompc: error: no profile given\nhint: seccompc -h\n", 2},
		{"unknown flag", "-x", "", "seccompc: error: flag provided but not defined: -x\n", 2},
		{"unknown architecture", "-arch mips a.json", "", `seccompc: error: architecture "mips" is not supported`, 2},
		{"two with one", "a.json b.json", "", "seccompc: error: more than one profile needs -all", 2},
		{"output with all", "-all -o x a.json", "", "seccompc: error: -o and -all exclude each other", 2},
		{"missing", dir + "/none.json", "", "seccompc: error: " + dir + "/none.json: open ", 1},
		{"bad profile", bad, "", "seccompc: error: " + bad + `: profile: unknown key "defaultActoin"`, 1},
	} {
		var stdout, stderr bytes.Buffer
		code := run(strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.HasPrefix(stdout.String(), c.stdout) || !strings.HasPrefix(stderr.String(), c.stderr) {
			t.Errorf("%s: got %d, %q, %q", c.name, code, stdout.String(), stderr.String())
		}
	}
}
