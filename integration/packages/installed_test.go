package packages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// envDeb names a package to install: in a machine of the tests' own.
const envDeb = "SANDGLASS_TEST_DEB"

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, text)
	}
	return string(text)
}

// TestInstalled installs the .deb with dpkg, runs what it has brought, as an
// ordinary user and by the example unit, and removes it: nothing is left.
func TestInstalled(t *testing.T) {
	deb := os.Getenv(envDeb)
	if deb == "" {
		t.Skip("SKIP(want a machine to install a package in, have the host)")
	}
	testkit.Requires(t, "root", "dpkg", "man")
	const profile = "/etc/apparmor.d/sandglass"
	standIn(t)
	dpkg := func(args ...string) string {
		return command(t, "dpkg", append([]string{"--admindir=" + database(t)}, args...)...)
	}
	dpkg("-i", deb)
	files := strings.Fields(dpkg("-L", "sandglass"))
	if _, err := os.Stat(profile); err != nil {
		t.Errorf("the profile: %v", err)
	}
	if got := command(t, "man", "-w", "sandglass-run"); got != "/usr/share/man/man1/sandglass-run.1.gz\n" {
		t.Errorf("man -w: %q", got)
	}
	t.Run("user", installedForUser)
	t.Run("unit", installedUnit)

	dpkg("--purge", "sandglass")
	for _, path := range append(files, profile) {
		if info, err := os.Lstat(path); err == nil && (!info.IsDir() || strings.Contains(path, "sandglass")) {
			t.Errorf("%s is left", path)
		}
	}
	if left, err := filepath.Glob(database(t) + "/info/sandglass*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q %v", left, err)
	}
}

// database is an empty one for dpkg. It reads all of a database at each start,
// and the machine's has the host's hundreds of packages, behind an emulated bus.
func database(t *testing.T) string {
	t.Helper()
	const dir = "/var/tmp/dpkg"
	for _, d := range []string{dir + "/info", dir + "/updates"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := os.OpenFile(dir+"/status", os.O_CREATE, 0o644); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	return dir
}

// standIn puts an apparmor_parser that understands everything where this machine
// has none: the real one is the host's, or of a version that may know no abi/4.0.
func standIn(t *testing.T) {
	const parser = "/usr/local/bin/apparmor_parser"
	if err := os.MkdirAll("/etc/apparmor.d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(parser, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(parser) })
}

// installedForUser: the binary of PATH, in a group that systemd delegates.
func installedForUser(t *testing.T) {
	out := command(t, "systemd-run", "--quiet", "--pipe", "--wait", "--uid=1000", "-p", "Delegate=yes", "--",
		"sandglass", "run", "--json", "--", "sh", "-c", "echo hello")
	var r struct {
		Outcome  string
		ExitCode int `json:"exit_code"`
		Stdout   struct{ Text string }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Outcome != "exited" || r.ExitCode != 0 || r.Stdout.Text != "hello\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// installedUnit: the example as it is, but for where its output goes.
func installedUnit(t *testing.T) {
	const unit, output = "sandglass-example.service", "/run/sandglass-example.out"
	text, err := os.ReadFile("/usr/share/doc/sandglass/examples/" + unit)
	if err != nil {
		t.Fatal(err)
	}
	dir := "/etc/systemd/system/" + unit
	if err := os.WriteFile(dir, text, 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if err := os.Mkdir(dir+".d", 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir + ".d")
	if err := os.WriteFile(dir+".d/output.conf", []byte("[Service]\nStandardOutput=file:"+output+"\nStandardError=file:"+output+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "systemctl", "daemon-reload")
	failed := exec.Command("systemctl", "start", unit).Run()
	got, err := os.ReadFile(output)
	if failed != nil || err != nil || string(got) != "uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)\nhello from the sandbox\n" {
		t.Errorf("%v, %v: %s", failed, err, got)
	}
}
