package escape

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

// What the program leaves is the caller's when it comes out, also what it made
// for itself alone, which is another user's until then.
func TestArtefactsOfAnIDOfItsOwn(t *testing.T) {
	a := span(t, 8)
	out := filepath.Join(a.dir, "out")
	o := a.sh(t, "cd /out; umask 077; mkdir -p closed/in shut; echo secret >closed/in/f; echo x >shut/g; echo run >prog; chmod 755 prog; chmod 0 shut/g shut; ln -s /etc/passwd link",
		"--out", out, "--host-id", "own")
	if o.Exit != 0 {
		t.Fatalf("exit %d: %s", o.Exit, o.Stderr)
	}
	whose(t, o)
	for path, want := range map[string]struct {
		mode os.FileMode
		text string
	}{
		"closed": {mode: os.ModeDir | 0o755}, "closed/in/f": {0o600, "secret\n"}, "prog": {0o755, "run\n"},
		"shut": {mode: os.ModeDir | 0o755}, "shut/g": {0o600, "x\n"},
	} {
		st, err := os.Lstat(filepath.Join(out, path))
		if err != nil {
			t.Error(err)
			continue
		}
		if owner := st.Sys().(*syscall.Stat_t); int(owner.Uid) != a.who.UID || int(owner.Gid) != a.who.GID || st.Mode() != want.mode {
			t.Errorf("%s: %v of %d:%d, want %v of the caller", path, st.Mode(), owner.Uid, owner.Gid, want.mode)
		}
		if text, err := os.ReadFile(filepath.Join(out, path)); want.text != "" && string(text) != want.text {
			t.Errorf("%s: %q (%v)", path, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(out, "link")); !os.IsNotExist(err) {
		t.Errorf("the link was brought: %v", err)
	}
}

// A file that only the caller may read, and one that the program is to write, are
// not for another id: the run has the caller's and says so, or is refused.
func TestSourcesOfTheCallersAlone(t *testing.T) {
	a := span(t, 8)
	for name, mode := range map[string]os.FileMode{"open": 0o755, "closed": 0o700} {
		dir := filepath.Join(a.dir, name)
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "f"), "text\n")
		for _, path := range []string{dir, filepath.Join(dir, "f")} {
			if err := os.Chown(path, a.who.UID, a.who.GID); err != nil {
				t.Fatal(err)
			}
		}
	}
	open, closed := filepath.Join(a.dir, "open"), filepath.Join(a.dir, "closed")
	o := a.sh(t, "cat /src/f; ! touch /src/f 2>/dev/null", "-v", open+":/src", "--host-id", "own")
	if o.Exit != 0 || o.Stdout != "text\n" {
		t.Errorf("exit %d: %s%s", o.Exit, o.Stdout, o.Stderr)
	}
	whose(t, o)
	for _, c := range []struct{ mount, why, script string }{
		{closed + ":/src", closed + " is not for everybody to read", "cat /src/f"},
		{closed + "/f:/src", closed + "/f is below " + closed + ", which only its owner and group may enter", "cat /src"},
		{open + ":/src:rw", "files in the writable mount at /src would not be the caller's", "cat /src/f; echo more >>/src/f"},
	} {
		o := a.sh(t, c.script, "-v", c.mount)
		h := o.Result.HostID
		if o.Exit != 0 || o.Stdout != "text\n" || h == nil || h.Own || h.UID != a.who.UID || h.Why != c.why {
			t.Errorf("exit %d, %+v, want the caller's: %s\n%s%s", o.Exit, h, c.why, o.Stdout, o.Stderr)
		}
		refused(t, a.sh(t, "true", "-v", c.mount, "--host-id", "own"), "--host-id own: "+c.why)
		opts := a.opts(t)
		opts.Verb = "plan"
		p := testkit.Run(t, opts, append(a.who.Flags(), "-v", c.mount, "--", "true")...)
		if !strings.Contains(p.Stdout, "on the host the caller's own id ("+c.why+")\n") {
			t.Errorf("plan does not say %q:\n%s%s", c.why, p.Stdout, p.Stderr)
		}
	}
}

// Denials are told although the program's descriptors are another user's.
func TestDenialsOfAnIDOfItsOwn(t *testing.T) {
	testkit.Requires(t, "python3")
	a := span(t, 8)
	o := a.sh(t, `exec python3 -c 'import os, socket
d = os.open("/usr", os.O_RDONLY)
try: os.open("planted", os.O_WRONLY | os.O_CREAT, dir_fd=d)
except OSError: pass
for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM: socket.socket(socket.AF_INET, kind).connect_ex(("192.0.2.1", 9))'`, "--explain-denials", "--host-id", "own")
	whose(t, o)
	var got []string
	for _, d := range o.Result.Denied {
		if d.Kind != "syscall" {
			got = append(got, strings.TrimSpace(d.What+" "+d.Args))
		}
	}
	slices.Sort(got)
	if want := []string{"/usr/planted openat", "192.0.2.1:9", "192.0.2.1:9 UDP"}; !slices.Equal(got, want) {
		t.Errorf("exit %d, denied %q, want %q\n%s", o.Exit, got, want, o.Stderr)
	}
}

// A helper is believed in nothing: what the kernel has is what counts.
func TestALyingHelperIsRefused(t *testing.T) {
	testkit.Requires(t, "gcc")
	const source = `#include <stdio.h>
int main(int argc, char **argv) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%s/uid_map", argv[1]);
	FILE *f = fopen(path, "w");
	if (!f) return 1;
	fprintf(f, "%s 777 1\n", argv[2]);
	return fclose(f) != 0;
}`
	for _, c := range []struct{ name, source, want string }{
		{"maps another id", source, `/usr/bin/newuidmap said that it has mapped the ids, and the kernel has "65534 777 1", not "65534 700000 1"`},
		{"maps none", `int main(void) { return 0; }`, `/usr/bin/newuidmap said that it has mapped the ids, and the kernel has "", not "65534 700000 1"`},
		{"fails", "#include <unistd.h>\nint main(void) { write(2, \"no \\033[2J\", 7); return 3; }", `/usr/bin/newuidmap did not map the ids: "no \x1b[2J"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := span(t, 1)
			liar := filepath.Join(testkit.Dir(t), "newuidmap")
			program, err := os.ReadFile(testkit.C(t, c.source))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(liar, program, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(liar, 0o755|os.ModeSetuid); err != nil {
				t.Fatal(err)
			}
			a.setup += "mount --bind " + liar + " /usr/bin/newuidmap\n"
			o := a.sh(t, "echo ran")
			refused(t, o, c.want)
			if o.Stdout != "" {
				t.Errorf("the program ran: %s", o.Stdout)
			}
		})
	}
}

// Where no id of its own can be had the run says why, and what to paste.
func TestIDsThatCannotBeHad(t *testing.T) {
	own := "USER:700000:8\n"
	id := strconv.Itoa(testkit.AsUser(t).UID)
	for _, c := range []struct {
		name, subuid, subgid, setup, why, hint string
	}{
		{"none", "", own, "", "/etc/subuid has no ids for USER", "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"},
		{"no groups", own, "other:100000:65536\n", "", "/etc/subgid has no ids for USER", "sudo usermod --add-subuids 165536-231071 --add-subgids 165536-231071 USER"},
		{"malformed", "USER:700000\nUSER:-1:5\nUSER:700000:8:\nUSER: 7:8\n", own, "", "/etc/subuid has no ids for USER (lines that are not OWNER:FIRST:COUNT: 4)", ""},
		{"root's", "USER:0:65536\n", own, "", "/etc/subuid has no ids for USER that are above 65535, in this user namespace and nobody else's", ""},
		{"another's too", own + "other:699999:65536\n", own, "", "/etc/subuid has no ids for USER that are above 65535, in this user namespace and nobody else's", ""},
		{"helper without rights", own, own, "touch /run/none; chmod 644 /run/none; mount --bind /run/none /usr/bin/newuidmap\n",
			"/usr/bin/newuidmap is neither set-uid nor has it file capabilities", "sudo chmod u+s /usr/bin/newuidmap"},
		{"nosuid", own, own, "mount --bind /usr/bin /usr/bin; mount -o remount,bind,nosuid /usr/bin\n",
			"/usr/bin/newuidmap gains no rights: its file system is mounted nosuid", ""},
		{"foreign locks", own, own, "mount -t tmpfs -o mode=0777 tmpfs /run/user/" + id + "\n", "there is no place for the locks of the ids: /run/user/" + id + ": not a private directory of this user's", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := allot(t, c.subuid, c.subgid)
			a.setup += c.setup
			o := a.sh(t, "true", "--host-id", "own")
			refused(t, o, "--host-id own: "+c.why)
			if c.hint != "" && !strings.Contains(o.Stderr, "\nhint: "+c.hint+"\n") {
				t.Errorf("no hint %q in %s", c.hint, o.Stderr)
			}
		})
	}
	a := span(t, 1)
	a.setup += "set -- --no-new-privs \"$@\"\n" // of setpriv
	refused(t, a.sh(t, "true", "--host-id", "own"), "--host-id own: newuidmap gains no rights here: no_new_privs is set for this process")
}

// Ids that another user's line has as well, and every id that is not above the
// people's and services', are left out of a range that has others.
func TestIDsOfOthersAreNotTaken(t *testing.T) {
	a := allot(t, "USER:700000:2\nother:700000:1\n", "USER:1:1\nUSER:65534:3\n")
	for range 3 {
		o := a.sh(t, "true", "--host-id", "own")
		if got := pairOf(o); got != [2]int{700001, 65536} {
			t.Errorf("%v, want 700001 and 65536: %s", got, o.Stderr)
		}
	}
}

func pairOf(o testkit.Output) [2]int {
	if h := o.Result.HostID; h != nil && h.Own {
		return [2]int{h.UID, h.GID}
	}
	return [2]int{}
}

// Root's own id is no sandbox's.
func TestRootGivesNoSandboxItsOwnID(t *testing.T) {
	refused(t, testkit.Sh(t, testkit.AsRoot(t), "true", "--host-id", "caller"), "--host-id caller: root's own id would be the program's on the host")
	refused(t, testkit.Sh(t, testkit.AsRoot(t), "true", "--host-id", "nobody"), `--host-id: "nobody" is none of auto, own, caller`)
}
