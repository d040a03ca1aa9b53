package image

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// mirror is a small one of Debian's kind, on the disk, signed with a key of its own.
type mirror struct {
	t    *testing.T
	dir  string
	gpg  string // its directory of keys
	debs map[string]string
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	testkit.Requires(t, "gpg", "gpg-agent", "gpgconf", "dpkg-deb", "apt-get")
	m := &mirror{t: t, dir: testkit.Dir(t), gpg: testkit.Dir(t), debs: map[string]string{}}
	must(t, os.Chmod(m.gpg, 0o700))
	t.Cleanup(func() { exec.Command("gpgconf", "--homedir", m.gpg, "--kill", "all").Run() })
	m.key("test")
	must(t, os.WriteFile(m.keyring(), m.tool("gpg", "--batch", "--export", "test"), 0o644))
	must(t, os.MkdirAll(m.dir+"/dists/test/main/binary-"+runtime.GOARCH, 0o755))
	must(t, os.MkdirAll(m.dir+"/pool", 0o755))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *mirror) keyring() string { return m.dir + "/keyring.gpg" }

func (m *mirror) key(name string) {
	m.tool("gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-gen-key", name, "rsa2048", "sign", "never")
}

// tool runs a program of the host's.
func (m *mirror) tool(name string, args ...string) []byte {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "GNUPGHOME=" + m.gpg, "LC_ALL=C.UTF-8"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return out
}

// deb adds a package. Each file has a mode and a content; more is further fields.
func (m *mirror) deb(name, version, more string, files map[string]string, modes map[string]os.FileMode) {
	m.t.Helper()
	dir := testkit.Dir(m.t)
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody <nobody@test.example>\nDescription: a test\n%s", name, version, runtime.GOARCH, more)
	must(m.t, os.Mkdir(dir+"/DEBIAN", 0o755))
	must(m.t, os.WriteFile(dir+"/DEBIAN/control", []byte(control), 0o644))
	// It is never run: it would leave a trace.
	must(m.t, os.WriteFile(dir+"/DEBIAN/postinst", []byte("#!/bin/sh\ntouch "+m.dir+"/was-run\n"), 0o755))
	for path, text := range files {
		full := filepath.Join(dir, path)
		must(m.t, os.MkdirAll(filepath.Dir(full), 0o755))
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			must(m.t, os.Symlink(to, full))
			continue
		}
		mode := os.FileMode(0o644)
		if modes[path] != 0 {
			mode = modes[path]
		}
		must(m.t, os.WriteFile(full, []byte(text), 0o644))
		must(m.t, os.Chmod(full, mode))
	}
	must(m.t, os.Chmod(dir, 0o755))
	file := "pool/" + name + "_" + version + ".deb"
	m.tool("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", dir, filepath.Join(m.dir, file))
	m.debs[file] = control
}

const release = "dists/test/InRelease"

func (m *mirror) packages() string { return "main/binary-" + runtime.GOARCH + "/Packages" }

// publish writes the lists and signs them with a key; more is further fields.
func (m *mirror) publish(key, more string) {
	m.t.Helper()
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(m.debs)) {
		text, err := os.ReadFile(filepath.Join(m.dir, file))
		must(m.t, err)
		fmt.Fprintf(&b, "%sFilename: %s\nSize: %d\nSHA256: %s\n\n", m.debs[file], file, len(text), digest(text))
	}
	must(m.t, os.WriteFile(m.dir+"/dists/test/"+m.packages(), []byte(b.String()), 0o644))
	plain := m.gpg + "/Release"
	text := fmt.Sprintf("Origin: test\nSuite: test\nCodename: test\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n%sArchitectures: %s\nComponents: main\nSHA256:\n %s %d %s\n",
		more, runtime.GOARCH, digest([]byte(b.String())), b.Len(), m.packages())
	must(m.t, os.WriteFile(plain, []byte(text), 0o644))
	out := m.tool("gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--local-user", key, "--clearsign", "--output", "-", plain)
	must(m.t, os.WriteFile(filepath.Join(m.dir, release), out, 0o644))
}

// flags name the mirror.
func (m *mirror) flags() []string {
	return []string{"--mirror", "file:" + m.dir, "--suite", "test", "--keyring", m.keyring()}
}

// change changes one place of a file and keeps its size.
func (m *mirror) change(file, from, to string) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, file))
	must(m.t, err)
	if len(from) != len(to) || bytes.Count(text, []byte(from)) != 1 {
		m.t.Fatalf("%s has %d places with %q", file, bytes.Count(text, []byte(from)), from)
	}
	must(m.t, os.WriteFile(filepath.Join(m.dir, file), bytes.Replace(text, []byte(from), []byte(to), 1), 0o644))
}
