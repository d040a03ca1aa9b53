package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// build makes on the host, which is quick, all that the machines run.
func build(machines []machine) error {
	if err := os.MkdirAll(filepath.Join(work, "results"), 0o755); err != nil {
		return err
	}
	if err := command(nil, "go", "build", "-o", work+"/", "./hack/testsum", "./hack/again"); err != nil {
		return err
	}
	made := map[string]bool{}
	for _, m := range machines {
		if err := m.base(); err != nil {
			return err
		}
		if !made[m.arch] {
			if err := m.programs(); err != nil {
				return err
			}
			made[m.arch] = true
		}
		for _, s := range m.suites {
			out := filepath.Join(m.built("tests"), binaryName(s.pkg))
			if made[out] {
				continue
			}
			made[out] = true
			if prepare := preparations[s.pkg]; prepare != nil && m.arch == "" {
				if err := prepare(m.built("tests")); err != nil {
					return err
				}
			}
			if err := command(m.env(), "go", "test", "-c", "-o", out, "./"+s.pkg); err != nil {
				return err
			}
		}
	}
	return nil
}

// base is the machine's kernel and, for another architecture, its root.
func (m machine) base() error {
	args := []string{m.dir(), m.kernel}
	if m.release != "" {
		args = append(args, m.release, cmp.Or(m.arch, runtime.GOARCH))
	}
	if err := command(nil, "integration/vm/mkbase.sh", args...); err != nil || m.arch == "" {
		return err
	}
	return command(nil, "integration/vm/mkroot.sh", m.built("root"), m.release, m.arch)
}

func (m machine) env() []string {
	if m.arch == "" {
		return nil
	}
	return []string{"GOARCH=" + m.arch}
}

// programs are the commands and the hostile programs.
func (m machine) programs() error {
	for _, d := range []string{"tests", "c"} {
		if err := os.MkdirAll(m.built(d), 0o755); err != nil {
			return err
		}
	}
	// To a directory, each by its own name.
	if err := command(m.env(), "go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", m.built("tests")+"/", "./cmd/sandglass", "./cmd/sandglass-image"); err != nil {
		return err
	}
	return m.compile()
}

func binaryName(pkg string) string { return strings.ReplaceAll(pkg, "/", "_") + ".test" }

func command(env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
	return nil
}

// preparations are what a suite needs beside its binary.
var preparations = map[string]func(tests string) error{
	"integration/parity":   reference,
	"integration/hosts":    appArmor,
	"integration/packages": debPackage,
}

// debPackage is what integration/packages installs.
func debPackage(string) error {
	return command(nil, "go", "run", "./packaging/dist", "-once", "-arch", "amd64", "-formats", "deb", "-out", filepath.Join(work, "dist"))
}

// appArmor unpacks a parser of profiles that is newer than this host's: version
// 4 is the first to know the rules for user namespaces.
func appArmor(string) error {
	const script = `. hack/debian.sh && debian_root "$1" trixie amd64 apparmor`
	return command(nil, "bash", "-ec", script, "bash", filepath.Join(work, "apparmor"))
}

// reference builds the runc of go.mod, which the machines have no Go for.
func reference(tests string) error {
	return command([]string{"CGO_ENABLED=1"}, "go", "build", "-trimpath", "-tags", "seccomp", "-o", filepath.Join(tests, "runc"), "github.com/opencontainers/runc")
}

// onlyHere are programs in another machine's language.
var onlyHere = map[string]bool{"integration/escape/testdata/foreign.c": true, "integration/escape/testdata/trace.c": true}

// compile makes the hostile C programs under the names by which testkit.C looks
// for them: gcc is the slowest thing of all to emulate.
func (m machine) compile() error {
	gcc := "gcc"
	if m.arch == "arm64" {
		gcc = "aarch64-linux-gnu-gcc"
	}
	sources, err := filepath.Glob("integration/*/testdata/*.c")
	if err != nil {
		return err
	}
	for _, source := range sources {
		// The bench is no test, and its floor is compiled with the plan of its host.
		if m.arch != "" && onlyHere[source] || source == "integration/bench/testdata/floor.c" {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		out := filepath.Join(m.built("c"), "c-"+hex.EncodeToString(sum[:8]))
		if err := command(nil, gcc, "-O1", "-static", "-pthread", "-o", out, source); err != nil {
			return err
		}
	}
	return nil
}
