package image

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// A build that gets no packages says first why, and hints at the sources that it was
// given; another recipe's lock and a Dockerfile are told as these.
func TestBuildTellsTheCause(t *testing.T) {
	testkit.Requires(t, "apt-get")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		keys := h.file([]byte("no key\n"))
		lock := h.file([]byte("sandglass lock 1\npackage busybox-static 1 " + runtime.GOARCH + " " + strings.Repeat("0", 64) + "\n"))
		h.refused("sandglass: error: --keyring /no/such: no such file or directory\nhint: ls -ld -- /no/such\n",
			"build", "static", "--mirror", "http://127.0.0.1:9/debian", "--keyring", "/no/such")
		h.refused("hint: curl -I http://127.0.0.1:9/debian/dists/bookworm/InRelease   # whether the mirror answers\nhint: sandglass image from-host python3   # needs no network\n",
			"build", "python", "--mirror", "http://127.0.0.1:9/debian", "--suite", "bookworm", "--keyring", keys)
		flags := []string{"build", "-q", "static", "--mirror", "file:///no/such", "--suite", "bookworm", "--keyring", keys}
		_, _, errs := h.image(flags...)
		first, hints, _ := strings.Cut(errs, "\n")
		if !strings.HasPrefix(first, "sandglass: error: apt-get update: ") || !strings.Contains(first, "file:/no/such") || strings.Contains(first, "copy:") ||
			hints != "hint: ls -l -- /no/such/dists/bookworm/InRelease\n" {
			t.Errorf("%s", errs)
		}
		h.says(125, "sandglass: error: lock "+lock+": it does not have package bash *, which the recipe wants\nhint: --lock bash.lock   # one of this recipe's own\n",
			"build", "bash", "--lock", lock)
		h.refused("recipe archive: line 1: FROM is a Dockerfile's, and those are not read\nhint: docker build -t my-image . && docker save my-image > image.tar && ",
			"build", h.file([]byte("FROM python:3.12\n")))
		h.refused("recipe archive: line 1: unknown word packages: there are about, bytecode, cacerts, cmd, env, join, keep, link, package, remove, without\nhint: package busybox-static *\n",
			"build", h.file([]byte("packages x\n")))
	})
}

// What from-host cannot take it says with a line to paste, and takes nothing that a run
// could not start.
func TestFromHostTellsTheCause(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		for name, want := range map[string]string{
			"no-such-command": "\nhint: command -v no-such-command   # whether your shell has it\nhint: sandglass image build --help   # images of packages\n",
			"./prog":          "\nhint: sandglass image from-host \"$PWD\"/prog\n",
			"/no/such":        "from-host: /no/such: not found on this host\nhint: ls -ld -- /no/such\n",
		} {
			if exit, _, errs := h.image("from-host", name); exit == 0 || !strings.HasSuffix(errs, want) {
				t.Errorf("%s: exit %d, %q, want %q", name, exit, errs, want)
			}
		}
		text, err := os.ReadFile(testkit.StaticBusybox(t))
		if err != nil {
			t.Fatal(err)
		}
		exe := testkit.Dir(t) + "/prog"
		if err := os.WriteFile(exe, text, 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(exe, "/tmp/") {
			t.Fatalf("%s is not below /tmp", exe)
		}
		h.says(125, "sandglass: error: "+exe+" is "+exe+": /tmp is the sandbox's own inside, so that it could not be run\n"+
			"hint: install -D -- "+exe+" \"$HOME\"/bin/prog && sandglass image from-host \"$HOME\"/bin/prog\n", "from-host", exe)
	})
}

// A library of an interpreter's own that the loader cannot load by itself, as Java's
// that need others of Java's first, is no reason to refuse the interpreter.
func TestFromHostJava(t *testing.T) {
	testkit.Requires(t, "java")
	h := newHome(t, testkit.AsRoot(t))
	if exit, _, errs := h.image("from-host", "java"); exit != 0 {
		t.Fatalf("exit %d, %s", exit, errs)
	}
	if o := h.run("-m", "1g", "host-java", "java", "--version"); o.Exit != 0 || !strings.HasPrefix(o.Stdout, "openjdk ") {
		t.Errorf("exit %d, %q, %s", o.Exit, o.Stdout, o.Stderr)
	}
}
