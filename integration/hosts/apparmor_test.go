package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// envAppArmor names an unpacked root with apparmor_parser 4 in it, which is the
// first that knows the rule "userns".
const envAppArmor = "SANDGLASS_TEST_APPARMOR"

// restricting has everything below DIR run as Ubuntu has programs without a
// profile of their own: what they start may have a user namespace, and no
// capability in it. There the kernel changes to the second profile when the
// namespace is made, by a setting that is Ubuntu's alone; here the exec does it.
const restricting = `abi <abi/4.0>,
include <tunables/global>
profile hosts-test "DIR/**" flags=(attach_disconnected) {
  allow capability,
  /** rwlkm,
` + allowed + `  "DIR/**" px -> hosts-test-restricted,
}
profile hosts-test-restricted flags=(attach_disconnected) {
  audit deny capability,
  /** rwlkmix,
` + allowed + `}
`

// allowed is what both profiles leave as it is.
const allowed = `  allow network,
  allow unix,
  allow signal,
  allow ptrace,
  allow mqueue,
  allow userns,
  allow mount,
  allow umount,
  allow pivot_root,
`

// appArmor is a directory with apparmor_parser and sudo for the hints.
func appArmor(t *testing.T) string {
	t.Helper()
	root := os.Getenv(envAppArmor)
	if on, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled"); root == "" || strings.TrimSpace(string(on)) != "Y" {
		testkit.Skip(t, "AppArmor and its parser", "neither or one")
	}
	bin := testkit.Dir(t)
	loader := filepath.Join(root, "usr/lib64/ld-linux-x86-64.so.2")
	parser := "#!/bin/sh\nexec " + loader + " --library-path " + root + "/usr/lib/x86_64-linux-gnu " + root + "/usr/sbin/apparmor_parser --base " + root + "/etc/apparmor.d \"$@\"\n"
	for name, text := range map[string]string{"apparmor_parser": parser, "sudo": "#!/bin/sh\nexec \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("/etc/apparmor.d", 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// A restriction like Ubuntu's: the profile is named, and the profile that is printed for
// this very binary is all that a run needs once it is loaded.
func TestAppArmorRestriction(t *testing.T) {
	ownMachine(t)
	bin := appArmor(t)
	dir := filepath.Join(testkit.Dir(t), "a place")
	exe := filepath.Join(dir, "sandglass")
	text, err := os.ReadFile(testkit.Binary(t))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(exe, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	user := testkit.AsUser(t)
	at := func(t *testing.T, verb string, args ...string) testkit.Output {
		return testkit.Run(t, testkit.Opts{Who: user, Verb: verb, Setup: func(c *exec.Cmd) { c.Path, c.Args[0] = exe, exe }}, args...)
	}
	run := func() testkit.Output { return at(t, "", "--timeout", "100s", "--", "echo", "ran") }
	works(t, run())
	profile := filepath.Join(testkit.Dir(t), "restricting")
	if err := os.WriteFile(profile, []byte(strings.ReplaceAll(restricting, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	paste(t, "apparmor_parser -r "+profile, bin)
	defer paste(t, "apparmor_parser -R "+profile, bin)
	hint := `printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile sandglass "` + exe + `" flags=(unconfined) {\n  userns,\n}\n'` +
		" | sudo tee /etc/apparmor.d/sandglass && sudo apparmor_parser -r /etc/apparmor.d/sandglass   # for this binary alone"
	refused(t, at, run(), "init: hostname: operation not permitted (AppArmor's profile hosts-test, which this process is under, may refuse it)",
		hint, `dmesg | grep 'apparmor="DENIED"' | tail   # what was refused, and by which profile`)
	paste(t, hint, bin)
	defer paste(t, "apparmor_parser -R /etc/apparmor.d/sandglass && rm /etc/apparmor.d/sandglass", bin)
	works(t, run())
}
