package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// A hint can be followed: it is not refused itself, is not of a process that is
// gone, and does not name what a hostile file has named.
func TestHintsCanBeFollowed(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		if err := os.Symlink("/etc/shadow", dir+"/planted"); err != nil {
			t.Fatal(err)
		}
		where := "readlink -f -- " + dir + "/planted   # where it leads: name that itself, if it is what you want"
		ls, err := exec.LookPath("ls")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			args  []string
			hints string
		}{
			{[]string{"-e", "PATH=/tmp", "--", "ls"}, run(who) + " -- " + ls + "   # PATH inside does not lead to it"},
			{[]string{"--", "no-such-command"}, run(who) + " -- ls /usr/bin   # the commands that are inside"},
			{[]string{"--", "/usr/no"}, run(who) + " -- ls -ld -- /usr/no"},
			{[]string{"-w", "/proc/1/root", "--", "true"}, "--workdir /work"},
			{[]string{"-w", "/proc/none", "--", "true"}, "--workdir /work"},
			{[]string{"-w", "/nope", "--", "true"}, `-v "$PWD":/nope -w /nope   # if it is to be this directory of the host|--workdir /work`},
			{[]string{"--env-file", "/proc/self/environ", "--", "true"}, "-e NAME   # passes on one variable of yours"},
			{[]string{"--env-file", dir + "/planted", "--", "true"}, where},
			{[]string{"-v", dir + "/planted:/x", "--", "true"}, where},
		} {
			out := testkit.Run(t, testkit.Opts{Who: who, Dir: dir}, c.args...)
			if _, hints := complaint(t, out); strings.Join(hints, "|") != c.hints {
				t.Errorf("%q: exit %d, hints %q, want %q", c.args, out.Exit, hints, c.hints)
			}
		}
	})
}

// run is how a hint begins: with the weaker limits that the caller has accepted.
func run(who testkit.Who) string {
	return strings.Join(append([]string{"sandglass run"}, who.Flags()...), " ")
}

// A parent that is named is meant: no limit that may be missing excuses that it
// is not there.
func TestCgroupParentThatIsNotThere(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		out := testkit.Run(t, testkit.Opts{Who: who}, "--allow-degraded", "memory,cpu,pids,io", "--cgroup-parent", "/no/such/group", "--", "true")
		what, hints := complaint(t, out)
		if out.Exit != 125 || !strings.HasPrefix(what, "cgroup parent /") || !strings.Contains(what, "does not exist") || len(hints) == 0 {
			t.Errorf("exit %d, %q, hints %q", out.Exit, what, hints)
		}
	})
}

// A umask that takes everything does not keep the owner from what is collected.
func TestOutWithAUmask(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		o := testkit.Opts{Who: who, Dir: dir, Setup: func(cmd *exec.Cmd) {
			cmd.Args = append([]string{"sh", "-c", `umask 0777; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
		}}
		out := testkit.Run(t, o, "--out", "o", "--", "sh", "-c", "mkdir /out/d; echo x >/out/d/f")
		text, err := os.ReadFile(filepath.Join(dir, "o/d/f"))
		if out.Exit != 0 || out.Stderr != "" || err != nil || string(text) != "x\n" {
			t.Errorf("exit %d, stderr %q, %q %v", out.Exit, out.Stderr, text, err)
		}
		for name, want := range map[string]os.FileMode{"o": 0o700, "o/d": 0o700, "o/d/f": 0o600} {
			if st, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			} else if st.Mode().Perm() != want {
				t.Errorf("%s: %v, want %v", name, st.Mode().Perm(), want)
			}
		}
	})
}
