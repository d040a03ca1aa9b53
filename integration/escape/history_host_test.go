package escape

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// privileged is a copy of the binary that gives who starts it more rights.
func privileged(t *testing.T, give func(path string) error) string {
	t.Helper()
	text, err := os.ReadFile(testkit.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	path := testkit.Dir(t) + "/sandglass"
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Flags&unix.ST_NOSUID != 0 {
		testkit.Skip(t, "a file system with set-uid programs", "nosuid")
	}
	if err := give(path); errors.Is(err, unix.EOPNOTSUPP) {
		testkit.Skip(t, "file capabilities", err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}

// fileCapability writes CAP_DAC_OVERRIDE, permitted and effective, as
// capabilities(7) lays it out (VFS_CAP_REVISION_2).
func fileCapability(path string) error {
	var b []byte
	for _, word := range []uint32{0x02000000 | 1, 1 << unix.CAP_DAC_OVERRIDE, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return unix.Setxattr(path, "security.capability", b, 0)
}

// A sandbox that is installed set-uid opens, mounts and writes as root what its
// user names (CVE-2020-5291, CVE-2026-41163, most of firejail's). Ours needs no
// rights, and refuses to borrow some.
func TestBorrowedRightsAreRefused(t *testing.T) {
	testkit.Requires(t, "root")
	who := testkit.AsUser(t)
	dir := testkit.Dir(t)
	write(t, dir+"/secret", "root's secret")
	if err := os.Chmod(dir+"/secret", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, give := range map[string]func(string) error{
		"set-uid":      func(path string) error { return os.Chmod(path, 0o755|os.ModeSetuid) },
		"set-gid":      func(path string) error { return os.Chmod(path, 0o755|os.ModeSetgid) },
		"capabilities": fileCapability,
	} {
		t.Run(name, func(t *testing.T) {
			own := privileged(t, give)
			swap := func(cmd *exec.Cmd) { cmd.Path = own }
			for _, verb := range []string{"", "plan", "check", "version"} {
				args := []string{"-v", dir + "/secret:/x", "--", "cat", "/x"}
				if verb == "check" || verb == "version" {
					args = nil
				}
				o := testkit.Run(t, testkit.Opts{Who: who, Setup: swap, Verb: verb, Strict: true}, args...)
				if o.Exit != 125 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, "sandglass: error: this program is installed ") || o.HasResult {
					t.Errorf("%q: exit %d, %q, %q", verb, o.Exit, o.Stdout, o.Stderr)
				}
			}
			// Nothing is borrowed by who has it.
			o := must(t, testkit.Run(t, testkit.Opts{Who: testkit.AsRoot(t), Setup: swap}, "--", "true"))
			if o.Result.Outcome != result.Exited {
				t.Errorf("as root: %q", o.Result.Outcome)
			}
		})
	}
}

// The program's devices are the host's own nodes. A host whose /dev/null has
// become a file, which others write what they throw away to, must not hand it in
// (CVE-2025-31133, CVE-2026-88265).
func TestDevicesOfTheHostAreLookedAt(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	for _, name := range []string{"null", "random"} {
		file := testkit.Dir(t) + "/node"
		write(t, file, "what the host throws away")
		if err := unix.Mount(file, "/dev/"+name, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		testkit.Each(t, func(t *testing.T, who testkit.Who) {
			o := testkit.Sh(t, who, "cat /dev/"+name+" /proc/kcore")
			want := "sandglass: error: /dev/" + name + " of this host: not the device that it should be\n"
			if o.Exit != 125 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, want) || o.Result.Outcome != result.Refused {
				t.Errorf("exit %d, %q, %q, want %q", o.Exit, o.Stdout, o.Stderr, want)
			}
		})
		if err := unix.Unmount("/dev/"+name, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
}

// What follows the command is the program's: no second parser reads it, and no
// shell (CVE-2020-17367, CVE-2020-17368, CVE-2024-32462).
func TestArgumentsStayArguments(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		words := []string{"--", "--privileged", "-v", "/:/host", "--network=host", "$(id)", "`id`", ";id", "|id", "a b", "", "*", "\n", "--help"}
		want := strings.Join(words, "|") + "|"
		for what, args := range map[string][]string{
			"command": append([]string{"--", "/usr/bin/printf", "%s|"}, words...),
			"code":    append([]string{"-c", `printf '%s|' "$@"`, "--lang", "sh", "--"}, words...),
		} {
			if o := must(t, testkit.Run(t, testkit.Opts{Who: who}, args...)); o.Stdout != want {
				t.Errorf("%s: %q, want %q", what, o.Stdout, want)
			}
		}
		for _, name := range []string{"--privileged", "-v", "$(id)"} {
			o := testkit.Run(t, testkit.Opts{Who: who}, "--", name)
			if o.Exit != 127 || o.Stdout != "" || !strings.Contains(o.Stderr, "command not found") {
				t.Errorf("%s: exit %d, %q, %q", name, o.Exit, o.Stdout, o.Stderr)
			}
		}
	})
}

// Whatever a #! line, PATH, a link or a virtual environment leads to may be what
// a model or an earlier run has put there. It is read to see what it is, and never
// started outside (the joint of CVE-2019-14271): not by a run, not by a plan.
func TestNothingOfTheProgramsRunsOnTheHost(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		started := dir + "/started"
		hostile := "#!/bin/sh\n: >" + started + "\necho /usr/bin/python3\n"
		files := map[string]string{"tool": "#!" + dir + "/python3\nprint(1)\n", "tool.py": "#!" + dir + "/python3\nprint(1)\n"}
		for _, name := range []string{"python3", "python", "node", "perl", "ruby", "bash", "sh", "env/bin/python3", "env/bin/python"} {
			files[name] = hostile
		}
		files["env/pyvenv.cfg"] = "home = " + dir + "\n"
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err == nil && !who.IsRoot() {
				err = os.Chown(path, who.UID, who.GID)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		env := []string{"PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin"}
		for _, verb := range []string{"", "plan"} {
			for _, args := range [][]string{
				{dir + "/tool"}, {dir + "/tool.py"}, {"--", dir + "/python3", "-c", "print(1)"}, {"-c", "print(1)", "--lang", "python"},
				{"-c", "1", "--lang", "node"}, {"-c", "1", "--lang", "perl"}, {"-c", ":", "--lang", "sh"}, {"--venv", dir + "/env", "-c", "print(1)", "--lang", "python"},
			} {
				o := testkit.Run(t, testkit.Opts{Who: who, Env: env, Verb: verb}, args...)
				if _, err := os.Stat(started); err == nil {
					t.Fatalf("%s %q was started on the host: exit %d, %q, %q", verb, args, o.Exit, o.Stdout, o.Stderr)
				}
			}
		}
	})
}
