package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// greeting has a program, what it needs, and what no image has.
func greeting(t *testing.T) *mirror {
	m := newMirror(t)
	busybox, err := os.ReadFile(testkit.StaticBusybox(t))
	must(t, err)
	m.deb("greeting", "1:2.0-1", "Depends: greeting-data (>= 2), installer, scripted\nRecommends: greeting-more\n", map[string]string{
		"bin/busybox": string(busybox), "usr/bin/cat": "-> ../../bin/busybox", "usr/share/doc/greeting/copyright": "free",
		"usr/share/man/man1/greeting.1": "read me", "var/lib/greeting/state": "1", "etc/init.d/greeting": "#!/bin/sh",
	}, map[string]os.FileMode{"bin/busybox": 0o6755})
	m.deb("greeting-data", "2", "", map[string]string{"usr/share/greeting/b.txt": "world\n", "usr/share/greeting/a.txt": "hello\n", "usr/share/greeting/x/tests/t": "t"}, nil)
	m.deb("greeting-data", "3", "", map[string]string{"usr/share/greeting/b.txt": "moon\n", "usr/share/greeting/a.txt": "hello\n"}, nil)
	m.deb("greeting-more", "1", "", map[string]string{"usr/share/more": "more"}, nil)
	m.deb("installer", "1", "Depends: installer-data\n", map[string]string{"usr/bin/installer": "x"}, nil)
	m.deb("installer-data", "1", "", map[string]string{"usr/share/installer": "x"}, nil)
	m.deb("scripted", "1", "", map[string]string{"usr/lib/scripted/real": "s"}, nil)
	m.publish("test", "")
	return m
}

const greetingRecipe = `# of the test
about a greeting
package greeting *
package greeting-data 2
without installer
remove /usr/share/greeting/**/tests
join /usr/share/greeting/*.txt /etc/greeting
link busybox /bin/sh
link /usr/lib/scripted/real /usr/bin/scripted
env GREETING=1
cmd sh -c true
`

// recipe is a file of a home's.
func (h *home) recipe(text string) string {
	h.t.Helper()
	path := filepath.Join(testkit.Dir(h.t), "greeting.recipe")
	must(h.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// build builds and says the image's digest.
func (h *home) build(args ...string) string {
	h.t.Helper()
	exit, out, errs := h.image(append([]string{"build"}, args...)...)
	if exit != 0 {
		h.t.Fatalf("build %q: exit %d, %s", args, exit, errs)
	}
	id, _, _ := strings.Cut(out, " ")
	return id
}

// made is what show --json says of a built image.
type made struct {
	ID    string
	Image struct {
		Files, Dirs, Links, Bytes int64
		Inert                     struct{ Count int }
		Config                    struct{ Env, Cmd []string }
	}
	Origin   string
	Packages []struct{ Name, Version, SHA256 string }
	Manifest []struct{ SHA256, Package, Path string }
}

func (h *home) show(ref string) made {
	h.t.Helper()
	exit, out, errs := h.image("show", "--json", ref)
	var m made
	if err := json.Unmarshal([]byte(out), &m); exit != 0 || err != nil {
		h.t.Fatalf("show %s: exit %d, %v, %s", ref, exit, err, errs)
	}
	return m
}

// sound reads a built image from the disk: each file is as the manifest says, none
// is missing there, none has a bit that makes it another's, and verify agrees.
func (h *home) sound(ref string) made {
	h.t.Helper()
	m := h.show(ref)
	root := filepath.Join(h.dir, "sandglass/images", strings.TrimPrefix(m.ID, "sha256:"), "rootfs")
	have := map[string]string{}
	must(h.t, filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		if st.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != 0 {
			h.t.Errorf("%s has mode %v", p, st.Mode())
		}
		if st.Mode().IsRegular() {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(text)
			have[strings.TrimPrefix(p, root+"/")] = hex.EncodeToString(sum[:])
		}
		return nil
	}))
	for _, f := range m.Manifest {
		if have[f.Path] != f.SHA256 {
			h.t.Errorf("%s is %s, and the manifest says %s", f.Path, have[f.Path], f.SHA256)
		}
		delete(have, f.Path)
	}
	if len(have) > 0 || int64(len(m.Manifest)) != m.Image.Files || m.Image.Inert.Count != 0 {
		h.t.Errorf("%s: %d files, %d in the manifest, not there %q, inert %d", ref, m.Image.Files, len(m.Manifest), have, m.Image.Inert.Count)
	}
	if exit, out, errs := h.image("verify", ref); exit != 0 {
		h.t.Errorf("verify: exit %d, %s%s", exit, out, errs)
	}
	return m
}

// A recipe's packages are those that apt would install, without what is left out and
// what nobody can use inside; nothing of them is run, and the same gives the same.
func TestBuiltOfPackages(t *testing.T) {
	m := greeting(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		recipe := h.recipe(greetingRecipe)
		lockDir := testkit.Dir(t)
		must(t, os.Chmod(lockDir, 0o777))
		lock := filepath.Join(lockDir, "lock")
		id := h.build(append(m.flags(), "--lock", lock, recipe)...)
		got := h.sound("greeting")
		var packages, files []string
		for _, p := range got.Packages {
			packages = append(packages, p.Name+" "+p.Version)
		}
		for _, f := range got.Manifest {
			files = append(files, f.Package+" "+f.Path)
		}
		slices.Sort(files)
		if want := []string{"greeting 1:2.0-1", "greeting-data 2", "scripted 1"}; !slices.Equal(packages, want) {
			t.Errorf("packages %q, want %q", packages, want)
		}
		want := []string{
			"- etc/greeting", "- etc/group", "- etc/hostname", "- etc/hosts", "- etc/nsswitch.conf", "- etc/passwd", "- etc/resolv.conf",
			"greeting usr/bin/busybox", "greeting-data usr/share/greeting/a.txt", "greeting-data usr/share/greeting/b.txt", "scripted usr/lib/scripted/real",
		}
		if !slices.Equal(files, want) {
			t.Errorf("files %q, want %q", files, want)
		}
		o := h.run("greeting", "sh", "-c", "cat /etc/greeting /usr/bin/scripted; echo $GREETING; echo $0")
		if o.Exit != 0 || o.Stdout != "hello\nworld\ns1\nsh\n" {
			t.Errorf("exit %d, %q (%s)", o.Exit, o.Stdout, o.Stderr)
		}
		if _, err := os.Stat(m.dir + "/was-run"); err == nil {
			t.Error("a maintainer script was run")
		}
		// The same bytes, in another store and by another download; by the lock too.
		other := newHome(t, who)
		if again := other.build(append(m.flags(), recipe)...); again != id {
			t.Errorf("built twice: %s and %s", id, again)
		}
		if again := other.build(append(m.flags(), "--lock", lock, "--name", "locked", recipe)...); again != id {
			t.Errorf("built by the lock: %s and %s", id, again)
		}
	})
}

// What the lists did not promise, or nobody signed, is in no image: whoever changed
// it, on the way, on the mirror or in the directory of downloads.
func TestPackagesThatAreNotWhatWasSigned(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *mirror)
		want   string
	}{
		{"package", func(m *mirror) { m.swap("pool/greeting-data_2.deb") }, "Hash Sum mismatch"},
		{"list", func(m *mirror) { m.change("dists/test/"+m.packages(), "Version: 1:2.0-1", "Version: 1:2.0-2") }, "Hash Sum mismatch"},
		{"signed list", func(m *mirror) { m.change(release, "Suite: test", "Suite: tost") }, "is not signed"},
		{"key", func(m *mirror) { m.key("other"); m.publish("other", "") }, "is not signed"},
		{"signature", func(m *mirror) { must(m.t, os.Remove(filepath.Join(m.dir, release))) }, "does not have a Release file"},
		{"day", func(m *mirror) { m.publish("test", "Valid-Until: Fri, 02 Jan 2026 00:00:00 UTC\n") }, "is expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := greeting(t)
			c.change(m)
			h := newHome(t, testkit.AsUser(t))
			exit, out, errs := h.image(append([]string{"build", h.recipe(greetingRecipe)}, m.flags()...)...)
			if exit != 125 || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "sandglass: error: ") != 1 {
				t.Errorf("exit %d, %q, %q, want %q", exit, out, errs, c.want)
			}
			if _, list, _ := h.image("list"); list != "" {
				t.Errorf("there is an image: %s", list)
			}
		})
	}
}

// swap changes a package, and keeps its size.
func (m *mirror) swap(file string) {
	m.t.Helper()
	path := filepath.Join(m.dir, file)
	text, err := os.ReadFile(path)
	must(m.t, err)
	text[len(text)-20] ^= 1
	must(m.t, os.WriteFile(path, text, 0o644))
}

// A download that was changed afterwards is not used: it is got again.
func TestChangedDownload(t *testing.T) {
	m := greeting(t)
	h := newHome(t, testkit.AsUser(t))
	recipe := h.recipe(greetingRecipe)
	id := h.build(append(m.flags(), recipe)...)
	archives, err := filepath.Glob(h.dir + "/cache/sandglass/packages/archives/*.deb")
	must(t, err)
	if len(archives) != 3 {
		t.Fatalf("downloads: %q", archives)
	}
	for _, file := range archives {
		(&mirror{t: t}).swap(file)
	}
	if again := h.build(append(m.flags(), recipe)...); again != id {
		t.Errorf("%s and %s", id, again)
	}
	// Who else can write there could put one in between.
	state := h.dir + "/cache/sandglass/packages"
	must(t, os.Chmod(state, 0o777))
	h.refused("others can write to it", append([]string{"build", recipe}, m.flags()...)...)
	must(t, os.Chmod(state, 0o755))
	// A lock that wants what the signed lists do not have, by its digest.
	lock := filepath.Join(testkit.Dir(t), "lock")
	text := "sandglass lock 1\n"
	for _, p := range h.show("greeting").Packages {
		text += "package " + p.Name + " " + p.Version + " all " + strings.Repeat("0", 64) + "\n"
	}
	must(t, os.WriteFile(lock, []byte(strings.ReplaceAll(text, " all ", " "+arch()+" ")), 0o644))
	h.refused("was to be expected", append([]string{"build", "--lock", lock, recipe}, m.flags()...)...)
}

// Words that mean something else to apt, a file system or a terminal are refused by
// the line that has them, before anything is started.
func TestHostileRecipes(t *testing.T) {
	h := newHome(t, testkit.AsUser(t))
	for text, want := range map[string]string{
		"package -oAPT::Get::AllowUnauthenticated=1 *": `line 1: -oAPT::Get::AllowUnauthenticated=1 is not the name of a package`,
		"package bash -o":                              `line 1: -o is not the version of a package`,
		"package ../../etc *":                          `line 1: ../../etc is not the name of a package`,
		"package bash 1/unstable":                      `line 1: 1/unstable is not the version of a package`,
		"package bash- *":                              `line 1: bash- is not the name of a package`,
		"package bash *\nlink /etc/shadow /../x":       `line 2: /../x is not an absolute path in an image, without .. and the like`,
		"package bash *\nrun rm -rf /":                 `line 2: unknown word run: there are about, bytecode, cacerts, cmd, env, join, keep, link, package, remove, without`,
		"package bash *\nremove /a\x1b[2J":             "line 2: \"remove /a\\x1b[2J\" has a character that is not printable ASCII",
		"package bash *\nwithout bash\rpackage evil *": `line 2: "without bash\rpackage evil *" has a character that is not printable ASCII`,
		"package bash *\nwithout x1\npackage bash 5":   `line 3: package bash is there twice`,
		"without apt":                                  `it has no packages`,
	} {
		exit, out, errs := h.image("build", h.recipe(text))
		first, _, _ := strings.Cut(errs, "\n")
		if exit != 125 || out != "" || first != "sandglass: error: recipe greeting: "+want {
			t.Errorf("%q: exit %d, %q, %q", text, exit, out, first)
		}
	}
	if _, err := os.Stat(h.dir + "/cache"); err == nil {
		t.Error("something was made for them")
	}
	// The same for the flags that go into a line of sources.list.
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--mirror "http://x/ [trusted=yes]" is no address of a mirror`, []string{"--mirror", "http://x/ [trusted=yes]"}},
		{`--mirror copy:/x is no address of a mirror`, []string{"--mirror", "copy:/x"}},
		{`--suite "a main\ndeb http://y" is no name of a release`, []string{"--mirror", "file:/x", "--suite", "a main\ndeb http://y"}},
		{`--keyring "/etc/passwd trusted=yes": not an absolute path without blanks`, []string{"--mirror", "file:/x", "--keyring", "/etc/passwd trusted=yes"}},
		{`--suite and --keyring are of a mirror, and there is no --mirror`, []string{"--suite", "sid"}},
	} {
		exit, out, errs := h.image(append([]string{"build", "static"}, c.args...)...)
		first, _, _ := strings.Cut(errs, "\n")
		if exit != 125 || out != "" || first != "sandglass: error: "+c.want {
			t.Errorf("%q: exit %d, %q, %q", c.args, exit, out, errs)
		}
	}
}

// A host of another kind is told what it can do instead.
func TestHostWithoutApt(t *testing.T) {
	testkit.Requires(t, "root", "unshare", "apt-get")
	h := newHome(t, testkit.AsRoot(t))
	cmd := exec.Command("unshare", "-m", "sh", "-c", `mount --bind /dev/null /usr/bin/apt-get && exec "$0" build python`, testkit.ImageTool(t))
	cmd.Env = h.env()
	text, _ := cmd.CombinedOutput()
	want := `sandglass: error: packages are got by apt-get and dpkg-deb, and this host has no /usr/bin/apt-get
hint: sandglass image from-host python3   # of what is installed here
hint: sandglass image import --name python python.tar   # of an image that was made elsewhere
`
	if cmd.ProcessState.ExitCode() != 125 || string(text) != want {
		t.Errorf("exit %d, %s", cmd.ProcessState.ExitCode(), text)
	}
}
