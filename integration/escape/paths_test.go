package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// own is a directory of the caller's.
func own(t *testing.T, who testkit.Who, parts ...string) string {
	t.Helper()
	dir := testkit.Dir(t)
	if len(parts) > 0 {
		dir = filepath.Join(append([]string{}, parts...)...)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func link(t *testing.T, text, path string) {
	t.Helper()
	if err := os.Symlink(text, path); err != nil {
		t.Fatal(err)
	}
}

// refusedRun checks that a run was refused with these words and printed nothing.
func refusedRun(t *testing.T, o testkit.Output, words string) {
	t.Helper()
	if o.Exit != 125 || o.Stdout != "" || !strings.Contains(o.Stderr, words) {
		t.Errorf("exit %d, stdout %q, stderr %q, want %q", o.Exit, o.Stdout, o.Stderr, words)
	}
}

// An earlier run has left a link where the next one collects: at the
// destination, or on the way to it. Nothing is written to where it leads, by no
// name for the directory, and not with --force.
func TestPlantedLinkIsNoDestination(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		victim, proj := own(t, who, dir, "victim"), own(t, who, dir, "proj")
		write(t, victim+"/file", "as it was")
		if os.Getuid() == 0 {
			if err := os.Chown(victim+"/file", who.UID, who.GID); err != nil {
				t.Fatal(err)
			}
		}
		must(t, testkit.Sh(t, who, "cd /w; ln -s ../victim out; ln -s ../victim way; mkdir real; ln -s ../../victim real/out", "-v", proj+":/w:rw"))
		for _, out := range []string{"out", "way/new", "./real/out", "../proj/out", proj + "/out", proj + "/real/../out", proj + "/way/new"} {
			for _, force := range [][]string{nil, {"--force"}} {
				args := append(append([]string{}, force...), "--out", out, "--", "sh", "-c", "echo evil >/out/file; echo evil >/out/more")
				refusedRun(t, testkit.Run(t, testkit.Opts{Who: who, Dir: proj}, args...), "symbolic link")
			}
		}
		unchanged(t, victim)
		// The caller's own way through a link: the working directory.
		link(t, proj, dir+"/cwd")
		must(t, testkit.Run(t, testkit.Opts{Who: who, Dir: dir + "/cwd", Env: []string{"PWD=" + dir + "/cwd"}}, "--out", "real/good", "--", "sh", "-c", "echo ok >/out/file"))
		if text, err := os.ReadFile(proj + "/real/good/file"); string(text) != "ok\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// What the supervisor writes does not lie in what the program can write to,
// whatever the path is called: a link, a bind mount, or the directory around it.
func TestResultsAreOutOfTheProgramsReach(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		victim, rw := own(t, who, dir, "victim"), own(t, who, dir, "rw")
		sub := own(t, who, rw, "sub")
		write(t, victim+"/file", "as it was")
		link(t, rw, dir+"/alias")
		script := "rm -rf /w/sub; ln -s ../victim /w/sub; echo evil >/out/file"
		for _, c := range []struct {
			mount string
			flags []string
			words string
		}{
			{rw, []string{"--out", sub, "--force"}, "inside the writable mount"},
			{rw, []string{"--out", dir + "/alias/sub", "--force"}, "symbolic link"},
			{dir + "/alias", []string{"--out", sub, "--force"}, "inside the writable mount"},
			{dir + "/alias", []string{"--out", rw, "--force"}, "inside the writable mount"},
			{sub, []string{"--out", rw, "--force"}, "holds the writable mount"},
			{rw, []string{"--result", sub + "/r.json"}, "inside the writable mount"},
			{rw, []string{"--result", dir + "/alias/r.json"}, "symbolic link"},
			{dir + "/alias", []string{"--result", rw + "/r.json"}, "inside the writable mount"},
		} {
			opts := testkit.Opts{Who: who, Verb: "run"}
			args := append(append(append(who.Flags(), "-v", c.mount+":/w:rw"), c.flags...), "--", "sh", "-c", script)
			refusedRun(t, testkit.Run(t, opts, args...), c.words)
		}
		unchanged(t, victim)
		if names, err := os.ReadDir(rw); len(names) != 1 || err != nil {
			t.Errorf("something was written: %v, %v", names, err)
		}
	})
}

// The result is a new file: what else has the inode of an old one is left alone,
// and a link at its name is not followed.
func TestResultIsWrittenAnew(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		victim := own(t, who, dir, "victim")
		write(t, victim+"/file", "as it was")
		if err := os.Link(victim+"/file", dir+"/r.json"); err != nil {
			t.Fatal(err)
		}
		link(t, victim+"/file", dir+"/link.json")
		for name, ok := range map[string]bool{"r.json": true, "link.json": false} {
			o := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, append(who.Flags(), "--result", dir+"/"+name, "--", "true")...)
			if !ok {
				refusedRun(t, o, "symbolic link")
				continue
			}
			must(t, o)
			if text, err := os.ReadFile(dir + "/" + name); !strings.HasPrefix(string(text), `{"schema":1,`) {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		unchanged(t, victim)
	})
}

// An image that is a link is what it leads to: the host, or a home.
func TestImageThatIsALink(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir, home := testkit.Dir(t), testkit.Dir(t)
		write(t, home+"/token", "token")
		for text, words := range map[string]string{"/": "the whole host", home: "home directory", "/etc": "accounts"} {
			name := fmt.Sprintf("%s/l%d", dir, len(text))
			link(t, text, name)
			opts := testkit.Opts{Who: who, Env: []string{"HOME=" + home}}
			refusedRun(t, testkit.Run(t, opts, name, "/bin/cat", "/token", "/etc/shadow"), words)
			refusedRun(t, testkit.Run(t, opts, "--image", name, "--", "/bin/cat", "/token"), words)
		}
		// One that leads to an image is that image.
		link(t, image(t), dir+"/good")
		if o := testkit.Run(t, testkit.Opts{Who: who}, dir+"/good", "/try", "list:/none"); o.Stdout != "list:/none ENOENT\n" {
			t.Errorf("exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
	})
}

// Somebody turns the image into a link to another place while the run starts.
func TestImageSwappedWhileStarting(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		if err := os.Rename(image(t), dir+"/a"); err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/a/file", "task")
		other := image(t)
		write(t, other+"/file", "host-secret")
		link(t, other, dir+"/b")
		stop := swapping(dir+"/a", dir+"/b")
		got := map[string]int{}
		for range 40 {
			o := testkit.Run(t, testkit.Opts{Who: who, Env: []string{"HOME=" + other}}, "--image", dir+"/a", "--", "/try", "read:/file")
			switch {
			case o.Exit == 125 && o.Stdout == "":
				got["refused"]++
			case o.Exit == 0 && !strings.Contains(o.Stdout+o.Stderr, "host-secret"):
				got["image"]++
			default:
				t.Errorf("exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
			}
		}
		t.Logf("%d swaps, outcomes %v", stop(), got)
	})
}

// A script, a file of variables and a source that an earlier run has turned into
// links: into a place that is refused, or out of the mount that the program has.
func TestPlantedLinkIsNotRead(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		home := own(t, who)
		proj := own(t, who)
		other := own(t, who)
		for _, d := range []string{home + "/.aws", other + "/data"} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{home + "/.aws/credentials", other + "/.env", other + "/data/file"} {
			write(t, f, "SECRET=hunter2\n")
		}
		opts := testkit.Opts{Who: who, Dir: proj, Env: []string{"HOME=" + home}}
		must(t, testkit.Run(t, opts, "-v", proj+":/w:rw", "--", "sh", "-c",
			fmt.Sprintf("cd /w; for n in task.sh vars tool; do ln -s %s/.aws/credentials $n; ln -s %s/.env out.$n; done; ln -s %s/data data; ln -s %s/.aws aws; ln -s %s/.aws out.aws",
				home, other, other, home, home)))
		for _, args := range [][]string{
			{"./task.sh"}, {"--lang", "sh", "./tool"}, {proj + "/task.sh"}, {"--env-file", "vars", "--", "env"}, {"--env-file", "aws/credentials", "--", "env"},
			{"-v", "./aws:/a", "--", "cat", "/a/credentials"}, {"--lang", "sh", "aws/credentials"},
		} {
			refusedRun(t, testkit.Run(t, opts, args...), "holds the owner's keys")
		}
		rw := []string{"-v", proj + ":/w:rw"}
		for _, args := range [][]string{
			{"--lang", "sh", "./out.tool"}, {"--env-file", "out.vars", "--", "env"}, {"-v", "./data:/d", "--", "cat", "/d/file"}, {"--image", "./data", "--", "/file"},
		} {
			refusedRun(t, testkit.Run(t, opts, append(rw, args...)...), "leads out of the writable mount")
		}
	})
}

// A link to a program brings that program, and not the directory around it.
func TestProgramByALinkIsAFile(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		for _, d := range []string{"/app/bin", "/app/lib/app"} {
			if err := os.MkdirAll(dir+d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, dir+"/app/secret", "hunter2")
		write(t, dir+"/app/bin/app", "#!/bin/sh\nls "+dir+"/app; cat "+dir+"/app/secret\n")
		if err := os.Chmod(dir+"/app/bin/app", 0o755); err != nil {
			t.Fatal(err)
		}
		link(t, dir+"/app/bin/app", dir+"/link")
		for _, name := range []string{dir + "/link", dir + "/app/bin/app"} {
			if o := testkit.Run(t, testkit.Opts{Who: who}, "--", name); o.Stdout != "bin\n" {
				t.Errorf("%s: exit %d, %q, %q", name, o.Exit, o.Stdout, o.Stderr)
			}
		}
	})
}

// quoted is what a shell takes as it is.
var quoted = regexp.MustCompile("'[^']*'")

// Names that come from outside do not steer the terminal, forge a line, or run
// when a hint is pasted.
func TestNamesDoNotForgeLines(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		img := image(t)
		const evil = "a\x1b[2Jb\nsandglass: error: forged"
		if err := os.Mkdir(img+"/"+evil, 0o755); err != nil {
			t.Fatal(err)
		}
		link(t, evil, img+"/link")
		for _, o := range []testkit.Output{
			testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, append(who.Flags(), img, "/try")...),
			testkit.Run(t, testkit.Opts{Who: who}, img, "/"+evil),
			testkit.Run(t, testkit.Opts{Who: who}, "--", "/nope/"+evil),
			testkit.Run(t, testkit.Opts{Who: who}, "--", evil+";$(id)"),
			testkit.Run(t, testkit.Opts{Who: who}, "-w", "/work/$(id);x y", "--", "true"),
			testkit.Run(t, testkit.Opts{Who: who}, "--", "/nope/$(id);x y"),
		} {
			text := o.Stdout + o.Stderr
			if strings.Contains(text, "\x1b") || strings.Contains(text, "\nsandglass: error: forged") {
				t.Errorf("%q", text)
			}
			for l := range strings.Lines(text) {
				if hint, ok := strings.CutPrefix(l, "hint: "); ok && strings.Contains(quoted.ReplaceAllString(hint, ""), "$(id)") {
					t.Errorf("%q would run when it is pasted", hint)
				}
			}
		}
	})
}
