package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var compiled sync.Mutex

// EnvCompiled names a directory of programs that were compiled before, by the
// names that C gives them.
const EnvCompiled = "SANDGLASS_TEST_COMPILED"

// C compiles a C program, statically, once per process and text, and returns
// its path on the host. The test is skipped where there is no gcc.
func C(t testing.TB, source string) string {
	t.Helper()
	if before, ok := compiledBefore(source); ok {
		return before
	}
	Requires(t, "gcc")
	d, err := dir()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Compile(d, source)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Compile is C into a directory, for what is no test.
func Compile(dir, source string) (string, error) {
	if before, ok := compiledBefore(source); ok {
		return before, nil
	}
	out := filepath.Join(dir, nameOf(source))
	compiled.Lock()
	defer compiled.Unlock()
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := os.WriteFile(out+".c", []byte(source), 0o644); err != nil {
		return "", err
	}
	text, err := exec.Command("gcc", "-O1", "-static", "-pthread", "-o", out, out+".c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, text)
	}
	return out, os.Chmod(out, 0o755)
}

func nameOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "c-" + hex.EncodeToString(sum[:8])
}

// compiledBefore is the program in EnvCompiled, if it is there.
func compiledBefore(source string) (string, bool) {
	path := filepath.Join(os.Getenv(EnvCompiled), nameOf(source))
	_, err := os.Stat(path)
	return path, err == nil && filepath.IsAbs(path)
}

// Inside is where RunC puts the program.
const Inside = "/opt/test/prog"

// RunC compiles a C program, mounts it read-only and runs it with args.
func RunC(t testing.TB, o Opts, flags []string, source string, args ...string) Output {
	t.Helper()
	list := append([]string{"-v", C(t, source) + ":" + Inside}, flags...)
	list = append(list, "--", Inside)
	return Run(t, o, append(list, args...)...)
}
