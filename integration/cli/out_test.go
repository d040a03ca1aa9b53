package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		if out.Exit != 125 || out.Result.ExitCode != 125 || out.Result.Outcome == result.Exited {
			t.Errorf("exit %d, result %s %d", out.Exit, out.Result.Outcome, out.Result.ExitCode)
		}
		what, hints := complaint(t, out)
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
	out := testkit.Run(t, testkit.Opts{Who: who}, "--out", dir, "--timeout", "500ms", "--", "sh", "-c", "echo half >/out/log; while :; do :; done")
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if out.Exit != 124 || err != nil || string(text) != "half\n" {
		t.Errorf("exit %d, log %q %v", out.Exit, text, err)
	}
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
