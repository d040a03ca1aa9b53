package image

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// Words of docker's, and words too many, are answered with a line to paste.
func TestWordsThatAreNone(t *testing.T) {
	h := newHome(t, testkit.AsRoot(t))
	for args, want := range map[string]string{
		"load x.tar":       "image: unknown command load\nhint: sandglass image import x.tar",
		"rmi a b":          "image: unknown command rmi\nhint: sandglass image rm a b",
		"load -i x.tar":    "image: unknown command load\nhint: sandglass image import x.tar",
		"load --input=x":   "image: unknown command load\nhint: sandglass image import x",
		"save -o x.tar a":  "image: unknown command save\nhint: sandglass image export a x",
		"rmi -f a":         "image: unknown command rmi\nhint: sandglass image rm --force a",
		"images -q":        "image: unknown command images\nhint: sandglass image list",
		"import --nmae x":  "image import: unknown flag --nmae\nhint: did you mean --name?\nhint: sandglass image import --help",
		"show sha256:40":   "image sha256:40: of a digest at least 12 digits are needed\nhint: sandglass image list",
		"import /x/-x.tar": "image import: -x.tar makes no name for an image: -x is not a name for an image: letters, digits and ._-, a letter or digit first, and a tag after a colon\nhint: --name my-image",
		"import https://x.example/a/r.tar.gz": "image import: nothing is downloaded: get the file first, from where you trust it\n" +
			"hint: curl -fLo r.tar.gz -- https://x.example/a/r.tar.gz && sandglass image import r.tar.gz",
		"import node:20": "image import: no registry is asked for images: save it where docker is, or build it of packages\n" +
			"hint: docker save node:20 > image.tar && sandglass image import --name node:20 image.tar\n" +
			"hint: sandglass image build python   # or static, bash, node, go, java",
		"inspect a;b":      "image: unknown command inspect\nhint: sandglass image show 'a;b'",
		"images":           "image: unknown command images\nhint: sandglass image list",
		"save a out":       "image: unknown command save\nhint: sandglass image export a out",
		"lsit":             "image: unknown command lsit\nhint: sandglass image --help",
		"list python3":     "image list: it takes no arguments\nhint: sandglass image show python3",
		"list a b":         "image list: it takes no arguments\nhint: sandglass image list",
		"prune x y":        "image prune: it takes no arguments\nhint: sandglass image rm x y",
		"import x.tar x:1": "image import: it takes FILE|DIR\nhint: sandglass image import --name x:1 x.tar",
		"show":             "image show: it takes IMAGE\nhint: sandglass image show IMAGE\nhint: sandglass image show --help",
		"show --nope":      "image show: unknown flag --nope\nhint: sandglass image show --help",
		"rm nosuch":        "there is no image nosuch\nhint: sandglass image list",
		"show no/such":     "there is no image no/such\nhint: sandglass image list",
		"show nosuch":      "there is no image nosuch\nhint: sandglass image list\nhint: sandglass image import --name nosuch FILE",
		"build python --arch mips": "image build: --arch: images are for the machine that they are made on, and this one is linux/" + arch() +
			"\nhint: sandglass image build python   # on a machine that is mips",
		"build --platform=linux/" + arch() + " python -q": "image build: --platform: images are for the machine that they are made on, and this one is linux/" + arch() +
			"\nhint: sandglass image build python -q",
		"import --name x -": "image import: stdin is not read, for an archive is read more than once: give a file\n" +
			"hint: docker save x > image.tar && sandglass image import --name x image.tar",
		"pull docker.io/library/node:20": "image: no registry is asked for images: save it where docker is, or build it of packages\n" +
			"hint: docker save docker.io/library/node:20 > image.tar && sandglass image import --name node:20 image.tar\n" +
			"hint: sandglass image build python   # or static, bash, node, go, java",
	} {
		h.says(125, "sandglass: error: "+want+"\n", strings.Fields(args)...)
	}
	const help = "usage: sandglass image rm [--force] IMAGE...\n\n" +
		"takes names away, and images that have no other. One that a run uses stays\n\n  --force   of a digest: all its names\n"
	if exit, out, errs := h.image("rm", "--help"); exit != 0 || errs != "" || out != help {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	// The command that people type has it itself.
	if out, err := exec.Command(testkit.Binary(t), "image", "rm", "--help").CombinedOutput(); err != nil || string(out) != help {
		t.Errorf("sandglass image rm --help: %v, %q", err, out)
	}
}

// What a prune takes away it counts.
func TestPruneCounts(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", archive(t, file("a", 0o644, "1")))
		if _, out, _ := h.image("list"); !strings.HasSuffix(out, "        1 file       1 B\n") {
			t.Errorf("list: %q", out)
		}
		for path, text := range map[string]string{"names/gone": "sha256:" + digest(nil) + "\n", "names/x": ""} {
			if err := os.WriteFile(h.dir+"/sandglass/"+path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(h.dir+"/sandglass/"+path, who.UID, who.GID); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(h.dir+"/sandglass/tmp/killed", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(h.dir+"/sandglass/tmp/killed", who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
		id := strings.TrimPrefix(h.one("image.json"), h.dir+"/sandglass/images/")[:64]
		want := "removed sha256:" + id + "\nremoved the name gone, which meant no image\nremoved the name x, which meant no image\n" +
			"removed the leftovers of 1 killed import\n1 image and 0 unused contents removed\n"
		if exit, out, errs := h.image("prune"); exit != 0 || out != want {
			t.Errorf("exit %d, %q, %s, want %q", exit, out, errs, want)
		}
	})
}

// A store that cannot be looked at is not one without images.
func TestClosedStoreIsTold(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if who.IsRoot() {
			return // to whom nothing is closed
		}
		h := newHome(t, who)
		closed := testkit.Dir(t) + "/closed"
		if err := os.Mkdir(closed, 0o000); err != nil {
			t.Fatal(err)
		}
		h.set = []string{"XDG_DATA_HOME=" + closed + "/data"}
		want := "sandglass: error: image store " + closed + "/data/sandglass: permission denied\n" +
			"hint: ls -ld -- " + closed + "/data\nhint: export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own\n"
		for _, verb := range []string{"list", "prune", "verify"} {
			h.says(125, want, verb)
		}
	})
}

// What cannot be imported or exported is told with the file that it is about.
func TestImportHintsCanBePasted(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		text, empty := h.file([]byte("hello\n")), h.file(nil)
		two := archive(t, file("a", 0o644, "1"), file("b", 0o644, "22"))
		whole, cut := h.file(two), h.file(two[:1500])
		for _, c := range []struct {
			want string
			args []string
		}{
			{text + ": it is no archive: neither tar, nor tar packed with gzip or zstd\nhint: file -- " + text + "\n" +
				"hint: docker save python:3.12 > python.tar   # is one, as is tar -C root -cf root.tar .", []string{text}},
			{empty + ": it is empty, and no archive\nhint: ls -l -- " + empty, []string{empty}},
			{cut + ": the archive is cut off\nhint: sha256sum " + cut + "   # compare it with where it came from", []string{cut}},
			{whole + ": b: more than 2 bytes\nhint: --max-bytes 17179869184   # or more: what follows was not counted", []string{"--max-bytes", "2", whole}},
			{whole + ": more than 1 files and directories\nhint: --max-files 400000   # or more: what follows was not counted", []string{"--max-files", "1", whole}},
		} {
			h.says(125, "sandglass: error: "+c.want+"\n", append([]string{"import", "--name", "x"}, c.args...)...)
		}
		h.says(0, "", "import", "--name", "x", whole)
		h.says(125, "sandglass: error: there is no image xx\nhint: did you mean x?\nhint: sandglass image list\nhint: sandglass image import --name xx FILE\n", "show", "xx")
		h.says(125, "sandglass: error: there is no image xx\nhint: did you mean x?\nhint: sandglass image list\n", "rm", "xx")
		h.says(125, "sandglass: error: /no/such: no such file or directory\nhint: mkdir -p -- /no/such\n", "export", "x", "/no/such/dir")
		if who.IsRoot() {
			return // who can read everything
		}
		dir := testkit.Dir(t)
		if err := os.WriteFile(dir+"/closed", nil, 0o000); err != nil {
			t.Fatal(err)
		}
		h.says(125, "sandglass: error: "+dir+": closed: permission denied\nhint: chmod -R u+rX -- "+dir+"   # where the files are yours\n", "import", "--name", "y", dir)
		must(t, os.Chmod(dir, 0o700))
		h.says(125, "sandglass: error: "+dir+": permission denied\nhint: chmod -R u+rX -- "+dir+"   # where the files are yours\n", "import", "--name", "y", dir)
		root := h.file([]byte("of sudo docker save"))
		must(t, os.Chmod(root, 0o600))
		h.says(125, "sandglass: error: "+root+": permission denied\nhint: sudo chown -- \"$(id -u)\" "+root+"   # where root has made it, as sudo docker save does\n"+
			"hint: ls -l -- "+root+"\n", "import", "--name", "y", root)
	})
}

// A relative path in a variable counts for nothing, and is not passed over in silence.
func TestRelativePlaces(t *testing.T) {
	h := newHome(t, testkit.AsUser(t))
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		h.set = []string{"HOME=" + h.dir, name + "=some where"}
		want := "sandglass: error: " + name + " is \"some where\": not an absolute path, and such a one counts for nothing\n" +
			"hint: export " + name + "=\"$PWD\"/'some where'\nhint: unset " + name + "\n"
		for _, line := range []string{"list", "build static", "import x.tar"} {
			h.says(125, want, strings.Fields(line)...)
		}
	}
}

// A person who imports a directory without a program is told so: it may be another one
// than was meant.
func TestDirectoryWithoutPrograms(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		dir := testkit.Dir(t)
		must(t, os.WriteFile(dir+"/a", nil, 0o644))
		must(t, os.Chmod(dir, 0o755))
		const note = "there is no program in it"
		for i, want := range []bool{true, false} {
			term := testkit.NewTerminal(t)
			o := term.Start(testkit.Opts{Who: h.who, Env: h.env(), Verb: "image"}, "import", "--name", fmt.Sprint("x", i), dir).Wait()
			if got := term.Shown(); o.Exit != 0 || strings.Contains(got, note) != want {
				t.Errorf("exit %d, %q", o.Exit, got)
			}
			must(t, os.WriteFile(dir+"/b", nil, 0o755))
		}
	})
}
