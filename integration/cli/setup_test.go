package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// hack/setup.sh installs what is missing and only that, and calls nothing where
// all is there. In a mount namespace of the test's own the headers are hidden,
// and apt-get and sudo are stand-ins that print what they were asked for.
func TestSetupScript(t *testing.T) {
	testkit.Requires(t, "root", "bash")
	if _, err := os.Stat("/usr/include/seccomp.h"); err != nil {
		testkit.Skip(t, "libseccomp", err.Error())
	}
	stub, empty := testkit.Dir(t), testkit.Dir(t)
	setup := filepath.Join(testkit.Dir(t), "setup.sh")
	if err := os.WriteFile(setup, []byte(read(t, filepath.Join(testkit.Root(t), "hack/setup.sh"))), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"apt-get", "sudo"} {
		if err := os.WriteFile(filepath.Join(stub, name), []byte("#!/bin/sh\necho "+name+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const install = "env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "
	user := "setpriv --reuid 1000 --regid 1000 --clear-groups "
	for _, c := range []struct{ name, script, want string }{
		{"all is there", setup + " demo; " + setup + " test", ""},
		{"demo", "mount --bind " + empty + " /usr/include; " + setup + " demo",
			"setup: installing libc6-dev\napt-get update -q\n" + strings.TrimPrefix(install, "env DEBIAN_FRONTEND=noninteractive ") + "libc6-dev\n"},
		{"test", "mount --bind " + empty + " /usr/include; " + setup + " test",
			"setup: installing libc6-dev libseccomp-dev\napt-get update -q\n" +
				strings.TrimPrefix(install, "env DEBIAN_FRONTEND=noninteractive ") + "libc6-dev libseccomp-dev\n"},
		{"user with sudo", "mount --bind " + empty + " /usr/include; " + user + setup + " demo",
			"setup: installing libc6-dev\nsudo apt-get update -q\nsudo " + install + "libc6-dev\n"},
		{"user without", "rm " + stub + "/sudo; mount --bind " + empty + " /usr/include; " + user + setup + " demo || echo exit $?",
			"setup: missing: libc6-dev\nhint: as root: apt-get install libc6-dev\nexit 1\n"},
	} {
		cmd := exec.Command("unshare", "-m", "bash", "-c", "exec 2>&1; "+c.script)
		// The stand-ins first; sudo only there.
		cmd.Env = append(os.Environ(), "PATH="+stub+":"+os.Getenv("PATH"))
		if c.name == "user without" {
			if path, err := exec.LookPath("sudo"); err == nil && filepath.Dir(path) != stub {
				continue
			}
		}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", c.name, err, out, c.want)
		}
	}
}
