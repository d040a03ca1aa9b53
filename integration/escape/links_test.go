package escape

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// image makes a directory that can be an image, with a static program at /try.
func image(t *testing.T) string {
	t.Helper()
	dir := testkit.Dir(t)
	text, err := os.ReadFile(testkit.C(t, trySource))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/try", text, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An image can have a link where a mount, or one of our own places, must go. A
// mount that follows it lands on the host, or over /proc (CVE-2021-30465,
// CVE-2025-31133).
func TestMountTargetThatIsALink(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		victim, data := testkit.Dir(t), testkit.Dir(t)
		write(t, victim+"/file", "as it was")
		write(t, data+"/planted", "planted")
		for _, c := range []struct{ link, text, target string }{
			{"data", victim, "/data"}, {"data", "/proc", "/data"}, {"data", "../../../.." + victim, "/data/sub"},
			{"deep", "/", "/deep/x"}, {"data", "/proc/self/fd", "/data/1"}, {"data", "missing", "/data"}, {"data", "data", "/data"},
		} {
			img := image(t)
			if err := os.Symlink(c.text, filepath.Join(img, c.link)); err != nil {
				t.Fatal(err)
			}
			o := testkit.Run(t, testkit.Opts{Who: who}, "-v", data+":"+c.target, img, "/try", "list:"+c.target)
			if o.Exit != 125 || !strings.Contains(o.Stderr, "link") {
				t.Errorf("%s -> %s: exit %d, %q, %q", c.link, c.text, o.Exit, o.Stdout, o.Stderr)
			}
		}
		unchanged(t, victim)
	})
}

func unchanged(t *testing.T, victim string) {
	t.Helper()
	entries, err := os.ReadDir(victim)
	if err != nil || len(entries) != 1 || entries[0].Name() != "file" {
		t.Errorf("%s holds %v, %v", victim, entries, err)
	}
	if text, err := os.ReadFile(victim + "/file"); err != nil || string(text) != "as it was" {
		t.Errorf("%q, %v", text, err)
	}
}

// Where an image has links, files or devices at our own places, ours win.
func TestImageCannotReplaceOurPlaces(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		victim := testkit.Dir(t)
		write(t, victim+"/file", "as it was")
		if err := os.Chmod(victim, 0o777); err != nil {
			t.Fatal(err)
		}
		img := image(t)
		for _, name := range []string{"dev", "proc", "sys", "tmp", "work", "out", "etc", "var"} {
			if err := os.Symlink(victim, filepath.Join(img, name)); err != nil {
				t.Fatal(err)
			}
		}
		o := testkit.Run(t, testkit.Opts{Who: who}, img, "/try",
			"creat:600:/tmp/x", "creat:600:/work/x", "creat:600:/out/x", "creat:600:/dev/x", "creat:600:/etc/x", "list:"+victim, "open:r:/proc/self/status", "open:r:/dev/null")
		want := "creat:600:/tmp/x OK\ncreat:600:/work/x OK\ncreat:600:/out/x OK\ncreat:600:/dev/x EROFS\ncreat:600:/etc/x EROFS\nlist:" + victim +
			" ENOENT\nopen:r:/proc/self/status OK\nopen:r:/dev/null OK\n"
		if o.Stdout != want {
			t.Errorf("exit %d: %q, want %q; %s", o.Exit, o.Stdout, want, o.Stderr)
		}
		unchanged(t, victim)
	})
}

// Somebody on the host turns the source, or a directory on the way, into a link
// to a place that is refused, while the run starts. What is mounted must be what
// was judged, or nothing.
func TestSourceSwappedWhileStarting(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct{ name, swapped, source, file string }{
			{"last part", "a", "a", "hostname"}, {"directory on the way", "a", "a/ssl", "openssl.cnf"},
		} {
			dir := testkit.Dir(t)
			if err := os.MkdirAll(dir+"/a/ssl", 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, dir+"/a/hostname", "task\n")
			write(t, dir+"/a/ssl/openssl.cnf", "task\n")
			if err := os.Symlink("/etc", dir+"/b"); err != nil {
				t.Fatal(err)
			}
			stop := swapping(dir+"/"+c.swapped, dir+"/b")
			got := map[string]int{}
			for range 40 {
				o := testkit.Sh(t, who, "cat /data/"+c.file, "-v", dir+"/"+c.source+":/data")
				switch {
				case o.Exit == 0 && o.Stdout == "task\n":
					got["task"]++
				case o.Exit == 125 && o.Result.Outcome != result.Exited && o.Stdout == "":
					got["refused"]++
				default:
					t.Errorf("%s: exit %d, %q, %q", c.name, o.Exit, o.Stdout, o.Stderr)
				}
			}
			t.Logf("%s: %d swaps, outcomes %v", c.name, stop(), got)
		}
	})
}

// swapping exchanges two names as fast as it can until stop, which says how often.
func swapping(a, b string) (stop func() int) {
	end, done := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-end:
				done <- n
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	return func() int { close(end); return <-done }
}

// What a program leaves to be collected is as hostile as it can be.
func TestHostileArtefacts(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		secret := testkit.Dir(t) + "/secret"
		write(t, secret, "host-secret")
		out := testkit.Dir(t) + "/out"
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		if !who.IsRoot() && os.Getuid() == 0 {
			if err := os.Chown(out, who.UID, who.GID); err != nil {
				t.Fatal(err)
			}
		}
		script := strings.ReplaceAll(hostileTree, "SECRET", secret)
		o := must(t, testkit.Sh(t, who, script, "--out", out))
		skipped := map[string]bool{}
		for _, a := range o.Result.Artifacts {
			if a.Skipped != "" || a.Type == "symlink" {
				skipped[a.Path] = true
			}
		}
		for _, name := range []string{"abs", "secret", "rel", "root", "loop", "environ", "dangling", "endless", "dirlink", "pipe"} {
			if !skipped[name] {
				t.Errorf("%s is not named as left out: %v", name, o.Result.Artifacts)
			}
			if _, err := os.Lstat(filepath.Join(out, name)); err == nil {
				t.Errorf("%s was made on the host", name)
			}
		}
		collected(t, out, map[string]string{
			"plain.txt": "plain\n", "hard.txt": "plain\n", "setuid": "#!/bin/sh\n", "new\nline": "", "-rf": "", " lead": "", "a;b$(c)`d`": "", "sub/file": "deep\n",
		})
	})
}

const hostileTree = `cd /out; echo plain >plain.txt; ln plain.txt hard.txt; mkdir -p sub/closed; echo deep >sub/file; chmod 000 sub/closed
ln -s /etc/passwd abs; ln -s SECRET secret; ln -s ../../../../../../../..SECRET rel; ln -s / root; ln -s . loop
ln -s /proc/self/environ environ; ln -s missing dangling; ln -s /dev/zero endless; ln -s /tmp dirlink; mkfifo pipe
echo '#!/bin/sh' >setuid; chmod 6755 setuid 2>/dev/null; chmod 755 setuid; : >'new
line'; : >./-rf; : >' lead'; : >'a;b$(c)` + "`d`" + `'; truncate -s 1T sparse 2>/dev/null; rm -f sparse; exit 0`

// collected checks every file and that nothing else is there.
func collected(t *testing.T, out string, want map[string]string) {
	t.Helper()
	seen := 0
	filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky|os.ModeDevice|os.ModeNamedPipe|os.ModeSymlink|os.ModeSocket) != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		if d.IsDir() {
			return nil
		}
		rel, _ := filepath.Rel(out, path)
		text, err := os.ReadFile(path)
		if w, ok := want[rel]; !ok || err != nil || string(text) != w || bytes.Contains(text, []byte("host-secret")) {
			t.Errorf("%q: %q, %v, want %q", rel, text, err, w)
		}
		seen++
		return nil
	})
	if seen != len(want) {
		t.Errorf("%d files were collected, want %d", seen, len(want))
	}
}
