package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build makes on the host, which is quick, all that the machines run.
func build(machines []machine) error {
	for _, d := range []string{"tests", "results", "c"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			return err
		}
	}
	tests := filepath.Join(work, "tests")
	if err := command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", filepath.Join(tests, "sandglass"), "./cmd/sandglass"); err != nil {
		return err
	}
	if err := command("go", "build", "-o", filepath.Join(work, "testsum"), "./hack/testsum"); err != nil {
		return err
	}
	made := map[string]bool{}
	for _, m := range machines {
		if err := command("integration/vm/mkbase.sh", m.dir(), m.kernel); err != nil {
			return err
		}
		for _, s := range m.suites {
			if made[s.pkg] {
				continue
			}
			made[s.pkg] = true
			if s.pkg == "integration/parity" {
				if err := reference(tests); err != nil {
					return err
				}
			}
			if s.pkg == "integration/packages" {
				if err := command("go", "run", "./packaging/dist", "-once", "-arch", "amd64", "-formats", "deb", "-out", filepath.Join(work, "dist")); err != nil {
					return err
				}
			}
			if err := command("go", "test", "-c", "-o", filepath.Join(tests, binaryName(s.pkg)), "./"+s.pkg); err != nil {
				return err
			}
		}
	}
	return compile()
}

func binaryName(pkg string) string { return strings.ReplaceAll(pkg, "/", "_") + ".test" }

func command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
	return nil
}

// reference builds the runc of go.mod, which the machines have no Go for.
func reference(tests string) error {
	return command("env", "CGO_ENABLED=1", "go", "build", "-trimpath", "-tags", "seccomp", "-o", filepath.Join(tests, "runc"), "github.com/opencontainers/runc")
}

// compile makes the hostile C programs under the names by which testkit.C looks
// for them: gcc is the slowest thing of all to emulate.
func compile() error {
	sources, err := filepath.Glob("integration/*/testdata/*.c")
	if err != nil {
		return err
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		out := filepath.Join(work, "c", "c-"+hex.EncodeToString(sum[:8]))
		if err := command("gcc", "-O1", "-static", "-pthread", "-o", out, source); err != nil {
			return err
		}
	}
	return nil
}
