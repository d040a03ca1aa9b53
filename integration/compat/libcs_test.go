package compat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandglass/internal/testkit"
	profiles "sandglass/seccomp-profiles"
)

// libcs are the roots that hack/libcs.sh makes, of C libraries of several ages.
var libcs = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "build/libcs")
	out, err := exec.Command(filepath.Join(root, "hack/libcs.sh"), dir).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return dir, nil
})

// libcRoot is the root of a release: NAME or "musl".
func libcRoot(t *testing.T, name string) string {
	t.Helper()
	testkit.Requires(t, "root", "amd64")
	for _, tool := range []string{"apt-get", "dpkg-deb", "flock"} {
		if _, err := exec.LookPath(tool); err != nil {
			testkit.Skip(t, "Debian's packages", "no "+tool)
		}
	}
	dir, err := libcs()
	if err != nil {
		testkit.Skip(t, "Debian's packages", err.Error())
	}
	return filepath.Join(dir, name)
}

// releases are what is asked of: the C library's version is in the answer, so
// that nobody tests the host's.
var releases = []struct{ name, glibc, python string }{
	{"bullseye", "2.31", "3.9"},
	{"bookworm", "2.36", "3.11"},
	{"trixie", "2.41", "3.13"},
}

// TestOldAndNewLibraries: the C libraries of Debian 11, 12 and 13, and what is
// built on them, get on with the profile's answers.
func TestOldAndNewLibraries(t *testing.T) {
	for _, r := range releases {
		t.Run(r.name, func(t *testing.T) {
			root := libcRoot(t, r.name)
			o := inRoot(t, root, nil, "python3", "-c", source(t, "libc.py"))
			passed(t, o, "PASS glibc "+r.glibc+" python "+r.python)
			o = inRoot(t, root, nil, "sh", "-c", source(t, "libc.sh"))
			passed(t, o, "PASS")
			o = inRoot(t, root, nil, "perl", "-e", source(t, "libc.pl"))
			passed(t, o, "PASS")
		})
	}
}

func inRoot(t *testing.T, root string, flags []string, command ...string) testkit.Output {
	t.Helper()
	list := append([]string{"--image", root}, flags...)
	return testkit.Run(t, testkit.Opts{Who: testkit.AsRoot(t)}, append(append(list, "--"), command...)...)
}

// TestMusl: a static program with musl, which tries other calls than glibc does
// and asks less after an error.
func TestMusl(t *testing.T) {
	testkit.Requires(t, "gcc")
	program := muslProgram(t, libcRoot(t, "musl"))
	for _, profile := range []string{"default", "debug"} {
		o := testkit.Run(t, testkit.Opts{Who: testkit.AsRoot(t)}, "--seccomp", profile, "-v", program+":/prog", "--", "/prog")
		passed(t, o, "PASS")
	}
}

func muslProgram(t *testing.T, root string) string {
	t.Helper()
	dir := testkit.Dir(t)
	file := filepath.Join(dir, "libc.c")
	if err := os.WriteFile(file, []byte(source(t, "libc.c")), 0o644); err != nil {
		t.Fatal(err)
	}
	lib := root + "/usr/lib/x86_64-linux-musl/"
	out := filepath.Join(dir, "prog")
	cmd := exec.Command("gcc", "-O1", "-static", "-nostdinc", "-nostdlib", "-isystem", root+"/usr/include/x86_64-linux-musl",
		"-o", out, lib+"crt1.o", lib+"crti.o", file, lib+"libc.a", "-lgcc", lib+"crtn.o")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc with musl: %v\n%s", err, text)
	}
	return out
}

// TestWhoNeedsENOSYS shows for calls that are refused with ENOSYS who depends on
// it: with EPERM in its place, that library or runtime breaks, and the older one
// that does not know the call does not.
func TestWhoNeedsENOSYS(t *testing.T) {
	for _, c := range []struct {
		call, release, program string
		breaks                 bool
	}{
		{"clone3", "bullseye", "import threading; t = threading.Thread(target=print, args=('PASS',)); t.start(); t.join()", false},
		{"clone3", "bookworm", "import threading; t = threading.Thread(target=print, args=('PASS',)); t.start(); t.join()", true},
		{"clone3", "trixie", "import threading; t = threading.Thread(target=print, args=('PASS',)); t.start(); t.join()", true},
	} {
		t.Run(c.call+" "+c.release, func(t *testing.T) {
			root := libcRoot(t, c.release)
			o := inRoot(t, root, []string{"--seccomp", withEPERM(t, c.call)}, "python3", "-c", c.program)
			if broke := o.Stdout != "PASS\n"; broke != c.breaks {
				t.Errorf("with EPERM for %s it broke: %v, want %v\nstdout: %s\nstderr: %s", c.call, broke, c.breaks, o.Stdout, o.Stderr)
			}
			passed(t, inRoot(t, root, nil, "python3", "-c", c.program), "PASS")
		})
	}
}

// withEPERM is the default profile, compiled, with EPERM for one call that it
// answers with ENOSYS.
func withEPERM(t *testing.T, call string) string {
	t.Helper()
	before := profiles.Source("default")
	quoted := `"` + call + `", `
	if strings.Count(before, quoted) != 1 {
		t.Fatalf("the default profile has %d places with %s", strings.Count(before, quoted), quoted)
	}
	text := strings.Replace(before, quoted, "", 1)
	text = strings.Replace(text, `"syscalls": [`, `"syscalls": [{"names": ["`+call+`"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},`, 1)
	dir := testkit.Dir(t)
	if err := os.WriteFile(filepath.Join(dir, "p.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	o := testkit.Run(t, testkit.Opts{Verb: "profile", Dir: dir}, "compile", "p.json")
	if o.Exit != 0 {
		t.Fatalf("profile compile: exit %d, %s", o.Exit, o.Stderr)
	}
	return filepath.Join(dir, "p.bpf")
}
