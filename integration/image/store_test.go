package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

// own is a directory of the user's, with these modes for those above it.
func (h *home) own(modes map[string]os.FileMode) {
	h.t.Helper()
	for path, mode := range modes {
		path = filepath.Join(h.dir, path)
		if err := os.MkdirAll(path, 0o755); err != nil {
			h.t.Fatal(err)
		}
		for p := path; p != h.dir; p = filepath.Dir(p) {
			if err := os.Chown(p, h.who.UID, h.who.GID); err != nil {
				h.t.Fatal(err)
			}
		}
		if err := os.Chmod(path, mode); err != nil {
			h.t.Fatal(err)
		}
	}
}

// Where somebody else can put another store, or a link to one, none is used: not for
// an import, and not for a run, which would be a run of what they chose.
func TestForeignPathToTheStore(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.own(map[string]os.FileMode{"open": 0o777, "open/data/sandglass": 0o700, "sticky": 0o777 | os.ModeSticky, "sticky/data": 0o755, "group": 0o775, "group/data/sandglass": 0o700, "real": 0o755})
		for link, to := range map[string]string{"mine": "real", "sticky/link": h.dir + "/real", "mine2": "open/data"} {
			if err := os.Symlink(to, filepath.Join(h.dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(h.dir+"/group", -1, 12345); err != nil && os.Getuid() == 0 {
			t.Fatal(err)
		}
		put := func(data string) { h.set = []string{"XDG_DATA_HOME=" + filepath.Join(h.dir, data)} }
		for _, data := range []string{"sticky/data", "real", "mine"} {
			put(data)
			h.bring("x", busybox(t))
			if o := h.run("x", "echo", "hi"); o.Exit != 0 || o.Stdout != "hi\n" {
				t.Errorf("%s: exit %d, %s", data, o.Exit, o.Stderr)
			}
		}
		changed := func(dir string) string {
			return "another user can change " + filepath.Join(h.dir, dir) + ", and put another store in its place"
		}
		foreign := map[string]string{
			"open/data": changed("open"), "mine2": changed("open"),
			"sticky/link": "the symbolic link " + h.dir + "/sticky/link leads to nothing, or could be another user's",
		}
		if os.Getuid() == 0 { // who can give directories away
			h.own(map[string]os.FileMode{"theirs": 0o755, "theirs/data/sandglass": 0o700})
			if err := os.Chown(h.dir+"/theirs", 12345, 12345); err != nil {
				t.Fatal(err)
			}
			foreign["theirs/data"], foreign["group/data"] = changed("theirs"), changed("group")
		}
		put("open/none") // where there is none, nothing is wrong
		if exit, out, errs := h.image("list"); exit != 0 || out != "" {
			t.Errorf("exit %d, %s%s", exit, out, errs)
		}
		if o := h.run("true"); o.Exit != 0 {
			t.Errorf("a run beside no store: exit %d, %s", o.Exit, o.Stderr)
		}
		text := h.file(busybox(t))
		for data, want := range foreign {
			put(data)
			h.refused(want, "list")
			h.refused(want, "import", "--name", "x", text)
			if o := h.run("true"); o.Exit != 125 || !strings.Contains(o.Stderr, "\nhint: "+strings.Join(append([]string{"sandglass", "run"}, who.Flags()...), " ")+" -- true ") {
				t.Errorf("run with %s: exit %d, %s", data, o.Exit, o.Stderr)
			}
			if o := h.run("--image", "x", "--", "true"); o.Exit != 125 || !strings.Contains(o.Result.Error, want) {
				t.Errorf("run with %s: exit %d, %q", data, o.Exit, o.Result.Error)
			}
			if left, err := filepath.Glob(filepath.Join(h.dir, data, "sandglass/*/*")); data != "sticky/link" && (err != nil || len(left) > 0) {
				t.Errorf("%s: made %q, %v", data, left, err)
			}
		}
	})
}

// A store of another user's, a name that is none, a file in its place, and no name at
// all: each is told, or is no store.
func TestStoreThatIsNone(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		text := h.file(busybox(t))
		h.own(map[string]os.FileMode{"file": 0o755, "links": 0o755, "home": 0o755})
		if err := os.WriteFile(h.dir+"/file/sandglass", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("nowhere", h.dir+"/links/sandglass"); err != nil {
			t.Fatal(err)
		}
		h.set = []string{"XDG_DATA_HOME=" + h.dir + "/file"}
		h.refused("/file/sandglass: not a directory", "import", "--name", "x", text)
		h.refused("/file/sandglass: not a directory", "list")
		h.set = []string{"XDG_DATA_HOME=" + h.dir + "/links"}
		h.refused("/links/sandglass leads to nothing, or could be another user's", "import", "--name", "x", text)
		if who.IsRoot() {
			return // whose store has a place without a home
		}
		h.set = []string{"HOME=" + h.dir + "/home"}
		h.bring("x", busybox(t))
		if _, err := os.Stat(h.dir + "/home/.local/share/sandglass/names/x"); err != nil {
			t.Error(err)
		}
		// A relative one is none, by the specification of these directories.
		h.set = []string{"XDG_DATA_HOME=data", "HOME=" + h.dir + "/home"}
		if o := h.run("x", "sh", "-c", ":"); o.Exit != 0 {
			t.Errorf("exit %d, %s", o.Exit, o.Stderr)
		}
		h.set = []string{"HOME=home"}
		h.refused("image store: neither XDG_DATA_HOME nor HOME says where it is", "import", "--name", "x", text)
		if exit, out, errs := h.image("list"); exit != 0 || out != "" || errs != "" {
			t.Errorf("no store: exit %d, %q, %q", exit, out, errs)
		}
	})
}

// Many imports at once, by processes of their own, with removals and prunes between
// them: what is named in the end is whole, and nothing else is there.
func TestManyAtOnce(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		testkit.ImageTool(t)
		shared := strings.Repeat("x", 2<<20)
		one := h.file(archive(t, file("a", 0o644, shared), file("b", 0o755, "1")))
		two := h.file(archive(t, file("c", 0o644, shared), file("b", 0o755, "2")))
		var wg sync.WaitGroup
		for _, work := range [][][]string{
			{{"import", "--name", "one", one}, {"import", "--name", "gone", two}, {"rm", "gone"}},
			{{"import", "--name", "two", two}, {"prune"}},
			{{"import", "--name", "again", one}, {"prune"}, {"verify"}},
		} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for _, args := range work {
					exit, out, errs := h.image(args...)
					for exit == 125 && args[0] == "rm" && strings.Contains(errs, inUse) { // another's verify looks at it
						exit, out, errs = h.image(args...)
					}
					if exit != 0 {
						t.Errorf("%s: exit %d, %s%s", args, exit, out, errs)
					}
				}
			}()
		}
		wg.Wait()
		if exit, out, errs := h.image("verify"); exit != 0 || len(lines(out)) != 2 {
			t.Errorf("exit %d, %s%s", exit, out, errs)
		}
		if exit, out, _ := h.image("prune"); exit != 0 || out != "0 images and 0 unused contents removed\n" {
			t.Errorf("left: %s", out)
		}
		var left []string
		for _, dir := range []string{"names", "tmp"} {
			list, err := os.ReadDir(h.dir + "/sandglass/" + dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				left = append(left, dir+"/"+e.Name())
			}
		}
		if !slices.Equal(left, []string{"names/again", "names/one", "names/two"}) {
			t.Errorf("%q", left)
		}
	})
}

// On a full disk an import is refused and leaves nothing, and the store goes on. One
// that cannot be written to can still be run from.
func TestFullAndReadOnlyDisk(t *testing.T) {
	testkit.Requires(t, "root", "mount")
	h := newHome(t, testkit.AsRoot(t))
	big := h.file(archive(t, file("big", 0o644, strings.Repeat("0123456789abcdef", 1<<17))))
	small := h.file(archive(t, file("small", 0o644, "1")))
	script := `set -e
mount -t tmpfs -o size=3m,nr_inodes=60,mode=755 none "$1"
export XDG_DATA_HOME=$1
left() { find "$1/sandglass" -mindepth 2 -printf '%P ' ; echo; }
"$2" import --name small "$4" >/dev/null; before=$(left "$1")
dd if=/dev/urandom of="$1/fill" bs=64k count=24 status=none
for name in big big; do "$2" import --name $name "$3" && exit 1; test "$(left "$1")" = "$before"; done
rm "$1/fill"
for i in $(seq 40); do : > "$1/inode$i"; done
"$2" import --name big "$3" && exit 1; test "$(left "$1")" = "$before"
rm "$1"/inode*
"$2" import --name big "$3" >/dev/null && "$2" verify
mount -o remount,ro none "$1"
"$2" list; "$2" verify small
for verb in "rm small" "prune" "import --name y $4"; do "$2" $verb && exit 1; done
exit 0`
	cmd := exec.Command("sh", "-c", script, "sh", h.dir, testkit.ImageTool(t), big, small)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if n := strings.Count(errs.String(), ", and an import leaves at least "); err != nil || n != 3 || strings.Count(errs.String(), "read-only file system") != 3 {
		t.Errorf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	if n := strings.Count(out.String(), "files are as they were"); n != 3 {
		t.Errorf("verified %d times, want 3\n%s", n, out.String())
	}
}
