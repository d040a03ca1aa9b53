package compat

import (
	"os"
	"path/filepath"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

var compilers = []program{
	{file: "gcc.sh", needs: "bash gcc make", want: "a thread\nOpenMP 1\n"},
	{file: "sanitizers.sh", needs: "bash gcc", want: "fine\nindex 2 out of bounds for type\n"},
	{file: "c++.sh", needs: "bash g++", want: "caught 2\n"},
	{file: "strace.sh", needs: "bash strace", flags: "--seccomp debug", want: "traced\nexit 3\n3\n"},
	{file: "gdb.sh", needs: "bash gcc gdb", flags: "--seccomp debug",
		want: "$1 = 21\nValue returned is $2 = 42\nexited with code 052]\n"},
	{file: "go.go", needs: "go", flags: "--memory 512m --disk 256m", start: goRun, want: "a goroutine 1 1\n"},
}

func TestCompilers(t *testing.T) { each(t, compilers) }

// goRun builds in the scratch what a read-only mount has.
func goRun(t *testing.T, _ testkit.Who, file string) []string {
	t.Helper()
	dir := filepath.Dir(file)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n\ngo 1.20\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"-v", dir + ":/task", "-w", "/task", "--", "go", "run", "."}
}

// TestGoNeedsItsFlags: at the default memory limit the compiler is killed.
func TestGoNeedsItsFlags(t *testing.T) {
	testkit.Requires(t, "go")
	p := named(t, compilers, "go.go")
	p.flags = ""
	if o := p.run(t, testkit.AsRoot(t)); o.Result.Outcome == result.Exited && o.Exit == 0 {
		t.Error("go run works by default: docs/COMPATIBILITY.md asks for flags that it does not need")
	}
}
