package image

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// An image is run as docker runs it: its environment, directory, entrypoint and
// command, each of which the caller can replace; and never as its user.
func TestImageIsRunAsItSays(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("set", docker(t, map[string]any{
			"Env": []string{"PATH=/bin", "A=image", "B=image"}, "Entrypoint": []string{"/bin/sh", "-c", `echo "$A $B $PWD $(id -u) $*"`, "sh"},
			"Cmd": []string{"cmd"}, "WorkingDir": "/srv/app", "User": "0:0",
		}, busybox(t)))
		for line, want := range map[string]string{
			"set":                          "image image /srv/app 65534 cmd",
			"set a b":                      "image image /srv/app 65534 a b",
			"-e A=mine -w /work set":       "mine image /work 65534 cmd",
			"--user 7 set x":               "image image /srv/app 7 x",
			"--image set -- -x":            "image image /srv/app 65534 -x",
			"--entrypoint /bin/echo set y": "y",
			"--entrypoint= set echo z":     "z",
		} {
			o := h.run(strings.Fields(line)...)
			if o.Exit != 0 || o.Stdout != want+"\n" {
				t.Errorf("run %s: exit %d, %q, want %q (%s)", line, o.Exit, o.Stdout, want, o.Stderr)
			}
		}
	})
}

// What holds in the host's view holds in an image: a read-only root, the scratch,
// our files in /etc, mounts, collected files, and nothing of the host's.
func TestImageKeepsEveryRule(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t, file("etc/hostname", 0o644, "forged\n"), file("etc/shadow", 0o600, "closed\n"), link("etc/resolv.conf", "/run/resolv.conf"), file("srv/f", 0o644, "1")))
		out := testkit.Dir(t)
		if err := os.Chmod(out, 0o777); err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(testkit.Dir(t), "data")
		if err := os.WriteFile(data, []byte("mounted\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		script := `cat /etc/hostname /etc/hosts; cat /etc/resolv.conf | busybox head -n 1; cat /data; cat /etc/shadow
echo x > /srv/f || echo "no write"; touch /bin/y || echo "no file"; echo s > /tmp/s && cat /tmp/s; echo o > /out/o
busybox find /bin /srv /etc -perm /6000; ls -d /home /root /var /usr 2>/dev/null; grep -q image /proc/self/mountinfo 2>/dev/null; true`
		o := h.run("-v", data+":/data", "--out", filepath.Join(out, "o"), "x", "sh", "-c", script)
		want := []string{"sandglass", "127.0.0.1\tlocalhost sandglass", "::1\tlocalhost sandglass", "# no name server: the sandbox has no network", "mounted", "closed", "no write", "no file", "s"}
		if got := lines(o.Stdout); o.Exit != 0 || !slices.Equal(got, want) {
			t.Errorf("exit %d, %q, want %q (%s)", o.Exit, got, want, o.Stderr)
		}
		if text, err := os.ReadFile(filepath.Join(out, "o/o")); err != nil || string(text) != "o\n" {
			t.Errorf("collected: %q, %v", text, err)
		}
		if exit, out, errs := h.image("verify"); exit != 0 {
			t.Errorf("after the run the image is not as it was: %s%s", out, errs)
		}
	})
}

// An image that has something else where the sandbox has its own places, no
// loader, or a program of another machine's.
func TestOddImages(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		const look = `cat /etc/hostname; ls /dev/null; cat /proc/self/comm; echo x > /tmp/x; echo x > /work/x; readlink /etc /proc /dev /tmp /work; true`
		want := []string{"sandglass", "/dev/null", "cat"}
		for name, odd := range map[string][]entry{
			"links": {link("etc", "/bin"), link("proc", "/bin"), link("dev", "/bin"), link("tmp", "/bin"), link("work", "/bin")},
			"files": {file("etc", 0o644, ""), file("proc", 0o644, ""), file("dev", 0o644, ""), file("tmp", 0o644, ""), file("work", 0o644, "")},
		} {
			h.bring(name, busybox(t, odd...))
			if o := h.run(name, "sh", "-c", look); o.Exit != 0 || !slices.Equal(lines(o.Stdout), want) {
				t.Errorf("%s: exit %d, %q, want %q (%s)", name, o.Exit, lines(o.Stdout), want, o.Stderr)
			}
		}
		other := []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x16\x00" + strings.Repeat("\x00", 100)) // s390
		h.bring("foreign", archive(t, file("bin/x", 0o755, string(other))))
		o := h.run("foreign", "/bin/x")
		if wantErr := "/bin/x: not a program this machine can run (wrong architecture, or a script without a #! line)"; o.Exit != 126 || o.Result.Error != wantErr {
			t.Errorf("another machine's program: exit %d, %q", o.Exit, o.Result.Error)
		}
		text, err := os.ReadFile("/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		h.bring("noloader", archive(t, file("bin/x", 0o755, string(text))))
		o = h.run("noloader", "/bin/x")
		if wantErr := "/bin/x: its interpreter or loader does not exist inside"; o.Exit != 127 || o.Result.Error != wantErr {
			t.Errorf("no loader: exit %d, %q", o.Exit, o.Result.Error)
		}
	})
}

// A program that could write to the store would be in every image of it.
func TestStoreIsNeverWritable(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t))
		store := h.dir + "/sandglass"
		for _, c := range []struct{ source, want string }{
			{h.dir, `image store: "` + store + `" is inside the writable mount "` + h.dir + `", where the program could replace it`},
			{store + "/images", `the writable mount "` + store + `/images" is in the image store "` + store + `"`},
		} {
			if o := h.run("-v", c.source+":/m:rw", "x", "true"); o.Exit != 125 || o.Result.Error != c.want {
				t.Errorf("%s: exit %d, %q, want %q", c.source, o.Exit, o.Result.Error, c.want)
			}
		}
		// Nor is it reached by an image's own links, or left open in the program.
		o := h.run("x", "sh", "-c", "ls /proc/self/fd | busybox wc -l; ls "+store+" 2>&1 | busybox wc -l")
		if o.Exit != 0 || o.Stdout != "4\n1\n" { // 0 1 2 and ls's own; "no such file"
			t.Errorf("exit %d, %q", o.Exit, o.Stdout)
		}
	})
}

// inUse is what refuses to remove an image.
const inUse = " is in use, by a run or by who verifies or exports it\n"

// While a run uses it an image cannot be removed.
func TestImageInUse(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t))
		p := testkit.Start(t, testkit.Opts{Who: who, Env: h.env()}, "--timeout", "60s", "x", "sh", "-c", "echo ready; busybox sleep 1000")
		p.WaitLine("ready")
		if exit, _, errs := h.image("rm", "x"); exit != 125 || !strings.Contains(errs, inUse) {
			t.Errorf("rm of an image in use: exit %d, %s", exit, errs)
		}
		p.Kill()
		p.Wait()
		if exit, _, errs := h.image("rm", "x"); exit != 0 {
			t.Errorf("rm afterwards: exit %d, %s", exit, errs)
		}
		if left, err := filepath.Glob(h.dir + "/sandglass/[^f]*/*"); err != nil || len(left) != 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	})
}

// What is refused leaves nothing: no name, no image, no work in progress.
func TestRefusedImportLeavesNothing(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		outside := testkit.Dir(t)
		if err := os.Chmod(outside, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			in   []byte
			want string
		}{
			"upwards":   {archive(t, file("a", 0o644, "1"), file("../../../../../../../.."+outside+"/pwn", 0o644, "x")), "leads upwards"},
			"hard link": {archive(t, file("a", 0o644, "1"), entry{tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: outside + "/x"}, nil}), "which is not in the image"},
			"cut off":   {archive(t, file("a", 0o644, strings.Repeat("x", 3<<20)))[:2<<20], "the archive is cut off"},
			"changed":   {[]byte(strings.Replace(string(docker(t, nil, archive(t, file("a", 0o644, "secret")))), "secret", "changed"[:6], 1)), "and the settings say"},
		} {
			exit, out, errs := h.image("import", "--name", "x", h.file(c.in))
			if exit != 125 || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("%s: exit %d, %q, %q, want %q", name, exit, out, errs, c.want)
			}
		}
		// One that leads out by a link is contained: it is a place in the image.
		h.bring("linked", archive(t, link("out", outside), file("out/pwn", 0o644, "x")))
		if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
			t.Errorf("outside of the image there is %v, %v", left, err)
		}
		if exit, _, errs := h.image("rm", "linked"); exit != 0 {
			t.Error(errs)
		}
		var left []string
		filepath.WalkDir(h.dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, strings.TrimPrefix(p, h.dir+"/sandglass/"))
			}
			return err
		})
		if !slices.Equal(left, []string{"lock"}) {
			t.Errorf("left in the store: %q", left)
		}
	})
}

// The verb finds its binary beside the command and nowhere else.
func TestVerbFindsItsBinary(t *testing.T) {
	bin := testkit.ImageTool(t)
	d := testkit.Dir(t)
	copyTo := func(from, name string, mode os.FileMode) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, name), text, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(d, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	try := func() (int, string) {
		cmd := exec.Command(filepath.Join(d, "sandglass"), "image", "list")
		cmd.Env = []string{"XDG_DATA_HOME=" + d + "/data", "PATH=" + filepath.Dir(bin)}
		text, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(text)
	}
	copyTo(testkit.Binary(t), "sandglass", 0o755)
	if exit, text := try(); exit != 125 || !strings.Contains(text, "sandglass-image: no such file or directory") {
		t.Errorf("none beside it, one on PATH: exit %d, %s", exit, text)
	}
	copyTo(bin, "sandglass-image", 0o777)
	if exit, text := try(); exit != 125 || !strings.Contains(text, "it is no program, or one that another user could change") {
		t.Errorf("one that everybody may write to: exit %d, %s", exit, text)
	}
	copyTo(bin, "sandglass-image", 0o755)
	if exit, text := try(); exit != 0 || text != "" {
		t.Errorf("exit %d, %s", exit, text)
	}
}
