package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// --out brings regular files and folders, says of the rest why it stayed away,
// and follows nothing.
func TestOut(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		out := testkit.Run(t, testkit.Opts{Who: who}, "--out", dir, "--", "sh", "-c", `
			cd /out; umask 022
			printf report >report.txt; chmod 0640 report.txt
			mkdir d; printf inner >d/inner; chmod 0755 d/inner
			ln -s /etc/passwd link; ln -s /etc dirlink; mkfifo fifo; : >empty`)
		if out.Exit != 0 || out.Stderr != "" {
			t.Fatalf("exit %d, stderr %q", out.Exit, out.Stderr)
		}
		want := []result.Artifact{
			{Path: "d", Type: "dir", Mode: "0755"},
			{Path: "d/inner", Type: "file", Size: 5, Mode: "0755", SHA256: sum("inner")},
			{Path: "dirlink", Type: "symlink", Target: "/etc"},
			{Path: "empty", Type: "file", Mode: "0644", SHA256: sum("")},
			{Path: "fifo", Type: "fifo"},
			{Path: "link", Type: "symlink", Target: "/etc/passwd"},
			{Path: "report.txt", Type: "file", Size: 6, Mode: "0640", SHA256: sum("report")},
		}
		if len(out.Result.Artifacts) != len(want) {
			t.Fatalf("manifest: %+v", out.Result.Artifacts)
		}
		for i, a := range out.Result.Artifacts {
			skipped := a.Type != "file" && a.Type != "dir"
			if (a.Skipped != "") != skipped {
				t.Errorf("%s: skipped %q", a.Path, a.Skipped)
			}
			if skipped {
				a.Skipped, a.Size, a.Mode = "", 0, ""
			}
			if a.Type == "dir" {
				a.Size = 0
			}
			if a != want[i] {
				t.Errorf("got  %+v\nwant %+v", a, want[i])
			}
		}
		names := []string{dir, dir + "/d", dir + "/d/inner", dir + "/empty", dir + "/report.txt"}
		if got := tree(t, dir); !slices.Equal(got, names) {
			t.Errorf("collected %q, want %q", got, names)
		}
	})
}

// What a program makes unreadable, on purpose or by a umask, is collected: an
// ordinary caller would else have nothing, and no word of it.
func TestOutLocked(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			script string
			names  []string
			mode   string // of the last
		}{
			{"echo a >a; chmod 0 a", []string{"a"}, "0600"},
			{"echo a >a; chmod 0 .", []string{"a"}, "0644"},
			{"umask 777; echo a >a", []string{"a"}, "0600"},
			{"mkdir -p d/e; echo a >d/e/a; chmod 0111 d/e/a; chmod 0444 d/e; chmod 0111 d", []string{"d", "d/e", "d/e/a"}, "0711"},
		} {
			dir := own(t, who) + "/new"
			out := testkit.Run(t, testkit.Opts{Who: who}, "--out", dir, "--", "sh", "-c", "umask 022; cd /out; "+c.script)
			want := []string{dir}
			for _, n := range c.names {
				want = append(want, dir+"/"+n)
			}
			if out.Exit != 0 || out.Stderr != "" || out.Result.Error != "" || !slices.Equal(tree(t, dir), want) || read(t, want[len(want)-1]) != "a\n" {
				t.Fatalf("%s: exit %d, stderr %q, collected %q", c.script, out.Exit, out.Stderr, tree(t, dir))
			}
			if a := out.Result.Artifacts; len(a) != len(c.names) || a[len(a)-1].Mode != c.mode || a[len(a)-1].Skipped != "" {
				t.Errorf("%s: manifest %+v", c.script, a)
			}
		}
	})
}

// What is already there is not overwritten without --force, and the run says so
// with an exit code of its own even though the program ended well.
func TestOutExisting(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		old := put(t, who, 0o644, "old", dir, "report.txt")
		elsewhere := put(t, who, 0o644, "elsewhere", own(t, who), "file")
		if err := os.Symlink(elsewhere, dir+"/link.txt"); err != nil {
			t.Fatal(err)
		}
		args := []string{"--out", dir, "--", "sh", "-c", "cd /out; echo new >report.txt; echo new >other.txt; echo new >link.txt"}
		out := testkit.Run(t, testkit.Opts{Who: who}, args...)
		if text, _ := os.ReadFile(old); string(text) != "old" {
			t.Errorf("report.txt is now %q", text)
		}
		if text, _ := os.ReadFile(elsewhere); string(text) != "elsewhere" {
			t.Errorf("the link was written through: %q", text)
		}
		what, hints := complaint(t, out)
		if r := out.Result; out.Exit != 125 || r.ExitCode != 0 || r.Outcome != result.Exited || r.Error != what {
			t.Errorf("exit %d, result %s %d %q", out.Exit, r.Outcome, r.ExitCode, r.Error)
		}
		if !strings.Contains(what, `report.txt`) || !strings.Contains(strings.Join(hints, "\n"), "--force") {
			t.Errorf("error %q, hints %q", what, hints)
		}
		out = testkit.Run(t, testkit.Opts{Who: who}, append([]string{"--force"}, args...)...)
		if out.Exit != 0 {
			t.Errorf("with --force: exit %d %q", out.Exit, out.Stderr)
		}
		if text, _ := os.ReadFile(old); string(text) != "new\n" {
			t.Errorf("with --force report.txt is %q", text)
		}
		if text, _ := os.ReadFile(elsewhere); string(text) != "elsewhere" {
			t.Errorf("with --force the link was written through: %q", text)
		}
	})
}

// A run that is ended by a limit still brings what it has written.
func TestOutAfterTimeout(t *testing.T) {
	who := testkit.AsUser(t)
	dir := own(t, who)
	out := testkit.Run(t, testkit.Opts{Who: who}, "--out", dir, "--timeout", "3s", "--", "sh", "-c", "echo half >/out/log; while :; do :; done")
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if out.Exit != 124 || err != nil || string(text) != "half\n" {
		t.Errorf("exit %d, log %q %v", out.Exit, text, err)
	}
}

// Ctrl-C and SIGTERM bring what was written until then, as a limit does. The
// program forks all the time and must not get to say that it no longer can.
func TestOutAfterASignal(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for sig, exit := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
			dir := own(t, who)
			p := testkit.Start(t, testkit.Opts{Who: who}, "--out", dir, "--timeout", "60s", "--", "sh", "-c", "echo half >/out/log; echo ready; while :; do /bin/true; done")
			p.WaitLine("ready")
			p.Signal(sig)
			out := p.Wait()
			text, err := os.ReadFile(filepath.Join(dir, "log"))
			if err != nil || string(text) != "half\n" || out.Stderr != "" {
				t.Errorf("%v: log %q %v, stderr %q", sig, text, err, out.Stderr)
			}
			r := out.Result
			if out.Exit != exit || r.Outcome != result.Canceled || r.ExitCode != exit || len(r.Artifacts) != 1 || r.Artifacts[0].SHA256 != sum("half\n") {
				t.Errorf("%v: exit %d, result %s %d %+v", sig, out.Exit, r.Outcome, r.ExitCode, r.Artifacts)
			}
		}
	})
}

// What the limits leave out is an error, for half a result looks like a whole
// one; the program's own end stays in the result.
func TestOutPastTheLimits(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			name, script string
			flags        []string
			want, hint   string // "" is no error
			kept         int
		}{
			{"entries", "i=0; while [ $i -lt 1200 ]; do : >f$i; i=$((i+1)); done; exit 3", nil,
				"200 entries were not collected: more than 1000 entries", "--out-files 2000", 1000},
			{"entries, as many as allowed", "i=0; while [ $i -lt 20 ]; do : >f$i; i=$((i+1)); done; exit 3", []string{"--out-files", "20"}, "", "", 20},
			{"one more", "i=0; while [ $i -lt 21 ]; do : >f$i; i=$((i+1)); done; exit 3", []string{"--out-files", "20"},
				"1 entry was not collected: more than 20 entries", "--out-files 40", 20},
			{"a file", "head -c 5000 /dev/zero >a; head -c 4000 /dev/zero >b; exit 3", []string{"--out-limit", "4k"},
				"1 entry was not collected: larger than the limit of one file, 4096 bytes", "--out-limit 16k", 1},
			{"together", "head -c 4000 /dev/zero >a; head -c 4000 /dev/zero >b; exit 3", []string{"--out-limit", "7k"},
				"1 entry was not collected: past the limit of all files together, 7168 bytes", "--out-limit 14k", 1},
			{"sparse", "truncate -s 10g a 2>/dev/null; [ -s a ] || truncate -s 60m a; : >b; exit 3", []string{"--out-limit", "1m"},
				"1 entry was not collected: larger than the limit of one file, 1048576 bytes", "--out-limit 64m", 1},
			{"levels", "mkdir -p 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17; exit 3", nil,
				"1 entry was not collected: deeper than 16 levels", "tar -cf /out/all.tar -C /work .   # at the program's end, instead of many levels", 16},
			{"links and a FIFO are the program's own", "ln -s a b; mkfifo c; exit 3", nil, "", "", 0},
		} {
			dir := own(t, who)
			args := append(append([]string{"--timeout", "60s", "--out", dir}, c.flags...), "--", "sh", "-c", "cd /out; "+c.script)
			out := testkit.Run(t, testkit.Opts{Who: who}, args...)
			if n := len(tree(t, dir)) - 1; n != c.kept {
				t.Errorf("%s: %d entries arrived, want %d", c.name, n, c.kept)
			}
			r, exit := out.Result, 3
			if c.want != "" {
				exit = 125
				what, hints := complaint(t, out)
				if what != "--out "+dir+": "+c.want || r.Error != what || !slices.Equal(hints, []string{c.hint}) {
					t.Errorf("%s: %q, hints %q, result %q", c.name, what, hints, r.Error)
				}
			} else if out.Stderr != "" || r.Error != "" {
				t.Errorf("%s: stderr %q, result %q", c.name, out.Stderr, r.Error)
			}
			if out.Exit != exit || r.Outcome != result.Exited || r.ExitCode != 3 {
				t.Errorf("%s: exit %d, result %s %d, want %d, exited 3", c.name, out.Exit, r.Outcome, r.ExitCode, exit)
			}
		}
	})
}

// A destination that cannot take files is refused before anything runs.
func TestOutRefused(t *testing.T) {
	who := testkit.AsUser(t)
	dir := own(t, who)
	file := put(t, who, 0o644, "", dir, "file")
	for _, c := range []struct{ out, want string }{
		{file, "not a directory"}, {dir + "/no/such", "does not exist"}, {"/etc", "refused"},
	} {
		marker := put(t, who, 0o644, "", own(t, who), "marker")
		got := testkit.Run(t, testkit.Opts{Who: who}, "--out", c.out, "-v", filepath.Dir(marker)+":/m:rw", "--", "sh", "-c", "echo ran >/m/marker")
		if what, _ := complaint(t, got); got.Exit != 125 || !strings.Contains(what, c.want) {
			t.Errorf("%s: exit %d, %q, want %q", c.out, got.Exit, what, c.want)
		}
		if text, _ := os.ReadFile(marker); len(text) != 0 {
			t.Errorf("%s: the program was run", c.out)
		}
	}
}
