package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// scriptHost runs the packages' scripts on a host below a directory, whose
// apparmor_parser is a stand-in that writes down how it was called.
type scriptHost struct {
	t    *testing.T
	root string
}

func newScriptHost(t *testing.T) *scriptHost {
	h := &scriptHost{t: t, root: testkit.Dir(t)}
	for _, d := range []string{"etc/apparmor.d", "usr/share/sandglass/apparmor", "bin", "var/cache/apparmor/1234.0"} {
		if err := os.MkdirAll(filepath.Join(h.root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write("usr/share/sandglass/apparmor/sandglass", h.source("apparmor/sandglass"), 0o644)
	h.parser("exit 0")
	return h
}

func (h *scriptHost) source(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(h.t), "packaging", name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

func (h *scriptHost) write(path, text string, mode os.FileMode) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, path), []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
}

// parser makes the stand-in.
func (h *scriptHost) parser(end string) {
	h.write("bin/apparmor_parser", "#!/bin/sh\necho \"$@\" >>"+h.root+"/calls\n"+end+"\n", 0o755)
}

// run runs a script, which must succeed in silence, and returns the calls of the
// parser, without the root.
func (h *scriptHost) run(script string, args ...string) string {
	h.t.Helper()
	text := h.source("scripts/" + script)
	for _, dir := range []string{"/etc/apparmor.d", "/usr/share/sandglass", "/var/cache/apparmor"} {
		text = strings.ReplaceAll(text, dir, h.root+dir)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", text, script}, args...)...)
	cmd.Env = []string{"PATH=" + h.root + "/bin:/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		h.t.Errorf("%s %q: %v\n%s", script, args, err, out)
	}
	calls, _ := os.ReadFile(h.root + "/calls")
	os.Remove(h.root + "/calls")
	return strings.ReplaceAll(string(calls), h.root, "")
}

// installed is the profile that AppArmor would load, "" for none.
func (h *scriptHost) installed() string {
	text, _ := os.ReadFile(h.root + "/etc/apparmor.d/sandglass")
	return string(text)
}

func TestProfileIsInstalledAndRemoved(t *testing.T) {
	h := newScriptHost(t)
	profile := h.source("apparmor/sandglass")
	const (
		tried  = "--skip-kernel-load --skip-cache /usr/share/sandglass/apparmor/sandglass\n"
		loaded = tried + "--replace /etc/apparmor.d/sandglass\n"
	)
	if got := h.run("postinst", "configure"); got != loaded || h.installed() != profile {
		t.Errorf("calls %q, profile %q", got, h.installed())
	}
	// One of an older version is replaced, and an upgrade takes nothing away.
	first, _, _ := strings.Cut(profile, "\n")
	h.write("etc/apparmor.d/sandglass", first+"\nolder\n", 0o644)
	for _, arg := range []string{"upgrade", "1"} {
		if got := h.run("prerm", arg); got != "" || h.installed() != first+"\nolder\n" {
			t.Errorf("prerm %s: calls %q, profile %q", arg, got, h.installed())
		}
	}
	if got := h.run("postinst", "configure", "1.0"); got != loaded || h.installed() != profile {
		t.Errorf("calls %q, profile %q", got, h.installed())
	}
	for _, arg := range []string{"remove", "0", "1.2.3"} { // dpkg, rpm, apk
		h.write("var/cache/apparmor/1234.0/sandglass", "", 0o644)
		if got := h.run("prerm", arg); got != "--remove /etc/apparmor.d/sandglass\n" || h.installed() != "" {
			t.Errorf("prerm %s: calls %q, profile %q", arg, got, h.installed())
		}
		if left, err := os.ReadDir(h.root + "/var/cache/apparmor/1234.0"); err != nil || len(left) > 0 {
			t.Errorf("prerm %s: left in the cache: %v %v", arg, left, err)
		}
		h.run("postinst")
	}
}

// What is not ours, and hosts that cannot.
func TestProfileIsLeftAlone(t *testing.T) {
	h := newScriptHost(t)
	const own = "profile sandglass /opt/sandglass {}\n"
	h.write("etc/apparmor.d/sandglass", own, 0o644)
	for _, script := range []string{"postinst", "prerm"} {
		if got := h.run(script, "remove"); strings.Contains(got, "/etc/") || h.installed() != own {
			t.Errorf("%s: calls %q, profile %q", script, got, h.installed())
		}
	}

	h = newScriptHost(t)
	h.parser("exit 1") // one before 4.0 does not know abi/4.0
	if h.run("postinst"); h.installed() != "" {
		t.Errorf("a parser that does not understand the profile has it: %q", h.installed())
	}

	h = newScriptHost(t)
	h.parser(`[ "$1" != --replace ]`) // a kernel without AppArmor
	if h.run("postinst"); h.installed() != h.source("apparmor/sandglass") {
		t.Errorf("the profile for the next boot: %q", h.installed())
	}

	h = newScriptHost(t)
	if err := os.Remove(h.root + "/bin/apparmor_parser"); err != nil {
		t.Fatal(err)
	}
	if h.run("postinst"); h.installed() != "" {
		t.Errorf("without a parser: %q", h.installed())
	}
	h.run("prerm", "remove")
}
