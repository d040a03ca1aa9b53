package compat

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func decoded(t *testing.T, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// loader is the ELF loader of this host as D10.sh names it.
func loader() string {
	if runtime.GOARCH == "arm64" {
		return "/lib/ld-linux-aarch64.so.1"
	}
	return "/lib64/ld-linux-x86-64.so.2"
}

// A JVM sizes its heap by the memory limit, which it finds in the view of the
// sandbox's own cgroup.
func TestJVMHeap(t *testing.T) {
	testkit.Requires(t, "java")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if !who.Limited() {
			testkit.Skip(t, "a delegated cgroup", "none")
		}
		flags := strings.Fields("--memory 512m --pids-limit 128 --timeout 60s -e MEM_LIMIT_MB=512")
		passed(t, run(t, who, "A16.sh", flags), "PASS")
	})
}

// LeakSanitizer traces its own process. The filter refuses that, and the
// preset keeps it from ending a good program with an error.
func TestLeakSanitizer(t *testing.T) {
	testkit.Requires(t, "gcc")
	dir := testkit.Dir(t)
	src, exe := filepath.Join(dir, "leak.c"), filepath.Join(dir, "leak")
	text := "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { void *volatile p = malloc(100); p = 0; puts(\"PASS\"); return 0; }\n"
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-fsanitize=address", "-o", exe, src).CombinedOutput(); err != nil {
		testkit.Skip(t, "libasan", strings.TrimSpace(string(out)))
	}
	if err := os.Chmod(exe, 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Run(t, testkit.Opts{Who: who}, "-v", dir+":/task", "--", "/task/leak")
		passed(t, o, "PASS")
		// Without the preset it is an error: the test sees what it is for.
		o = testkit.Run(t, testkit.Opts{Who: who}, "-v", dir+":/task", "-e", "LSAN_OPTIONS=", "--", "/task/leak")
		if o.Exit == 0 {
			t.Errorf("LeakSanitizer works without the preset: exit %d, stderr %q", o.Exit, o.Stderr)
		}
	})
}

// git takes a mounted checkout, whoever owns it, for its user's own.
func TestGitCheckout(t *testing.T) {
	testkit.Requires(t, "git")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		git(t, dir, "init", "-q", ".")
		git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", "x")
		own(t, who, dir)
		flags := []string{"-v", dir + ":/repo", "-e", "REPO=/repo"}
		passed(t, run(t, who, "A17.sh", flags), "PASS")
	})
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// own gives a tree to who and keeps others out.
func own(t *testing.T, who testkit.Who, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && os.Geteuid() == 0 {
			err = os.Lchown(path, who.UID, who.GID)
		}
		return err
	})
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoreRoot: a root with nothing but a store and links into it, as NixOS
// and Guix have, needs no /usr, /bin or /etc.
func TestStoreRoot(t *testing.T) {
	hello := testkit.C(t, "#include <stdio.h>\nint main(void) { puts(\"hello from the store\"); return 0; }\n")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		root := testkit.Dir(t)
		bin := filepath.Join(root, "nix/store/0abc-hello/bin")
		system := filepath.Join(root, "run/current-system")
		text, err := os.ReadFile(hello)
		if err == nil {
			err = os.MkdirAll(bin, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(bin, "hello"), text, 0o755)
		}
		if err == nil {
			err = os.MkdirAll(system, 0o755)
		}
		if err == nil {
			err = os.Symlink("/nix/store/0abc-hello", filepath.Join(system, "sw"))
		}
		if err != nil {
			t.Fatal(err)
		}
		o := testkit.Run(t, testkit.Opts{Who: who}, root, "/run/current-system/sw/bin/hello")
		passed(t, o, "hello from the store")
	})
}

// TestOwnInterpreter: an interpreter outside /usr is the one that runs inside,
// by its name, by the path on PATH and by its real path.
func TestOwnInterpreter(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		venv := filepath.Join(testkit.Dir(t), "env")
		if out, err := exec.Command("/usr/bin/env", "PATH=/usr/bin:/bin", "python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
			testkit.Skip(t, "python3 venv", strings.TrimSpace(string(out)))
		}
		path := "PATH=" + venv + "/bin:/usr/local/bin:/usr/bin:/bin"
		const prefix = "import sys; print(sys.prefix)"
		for _, args := range [][]string{
			{"-c", prefix, "--lang", "python"},
			{"--", "python3", "-c", prefix},
			{"--", "python", "-c", prefix},
			{"--", venv + "/bin/python3", "-c", prefix},
			{"--venv", venv, "--", "python3", "-c", prefix},
			{"--venv", venv, "-c", prefix, "--lang", "python"},
		} {
			o := testkit.Run(t, testkit.Opts{Who: who, Env: []string{path}}, args...)
			if o.Exit != 0 || o.Stdout != venv+"\n" {
				t.Errorf("%q: exit %d, %q, want %q\n%s", args, o.Exit, o.Stdout, venv, o.Stderr)
			}
		}
	})
}
