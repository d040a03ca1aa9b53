package doctor

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// root is a host with another root: files are made of others, links of their
// text. The binary under test is at its own path there.
type root struct {
	files, links map[string]string
	dirs         []string
}

// place makes it.
func (r root) place(t *testing.T, who testkit.Who) place {
	t.Helper()
	testkit.Requires(t, "root", "gcc", "userns")
	dir := testkit.Dir(t)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	below := func(path string) string {
		path = filepath.Join(dir, path)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		return path
	}
	for _, d := range append([]string{"/proc", "/sys", "/dev", "/tmp"}, r.dirs...) {
		must(os.MkdirAll(below(d), 0o755))
	}
	must(os.Chmod(below("/tmp"), 0o777|fs.ModeSticky))
	bin := testkit.Binary(t)
	for path, from := range r.files {
		copyTo(t, below(path), from)
	}
	copyTo(t, below(bin), bin)
	for path, text := range r.links {
		must(os.Symlink(text, below(path)))
	}
	text, err := os.ReadFile("testdata/enter.c")
	must(err)
	return place{who: testkit.AsRoot(t), prefix: []string{testkit.C(t, string(text)), dir, number(who.UID), number(who.GID)}}
}

func copyTo(t *testing.T, path, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// with writes a file for the host, by a path that is the same there.
func (p place) with(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(p.prefix[1], path)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// runs: a run there prints this, and nothing else happens.
func (p place) runs(t *testing.T, stdout string, args ...string) {
	t.Helper()
	if o := p.do(t, "run", args...); o.Exit != 0 || o.Stdout != stdout || o.Stderr != "" {
		t.Errorf("%q: exit %d, %q, %q; want %q", args, o.Exit, o.Stdout, o.Stderr, stdout)
	}
}

// everywhere is what doctor says of a host that is this one but for its root.
func everywhere(t *testing.T, who testkit.Who, p place) {
	t.Helper()
	base, r := place{who: who}.report(t), p.report(t)
	want{}.compare(t, base, r)
	if r.Run.State != base.Run.State {
		t.Errorf("a run: %s, %s; without another root %s", r.Run.State, r.Run.Error, base.Run.State)
	}
}

// musl is a loader and a program that needs it.
func musl(t *testing.T) (loader, hello string) {
	t.Helper()
	testkit.Requires(t, "musl-gcc")
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	dir := testkit.Dir(t)
	hello = filepath.Join(dir, "hello")
	if err := os.WriteFile(hello+".c", []byte("#include <stdio.h>\nint main(void) { return puts(\"musl\") < 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("musl-gcc", "-o", hello, hello+".c").CombinedOutput(); err != nil {
		t.Fatalf("musl-gcc: %v\n%s", err, text)
	}
	return "/lib/ld-musl-" + machine + ".so.1", hello
}

// A host as Alpine is: musl in /lib, no glibc, and /usr not merged.
func TestMuslHost(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		busybox := testkit.StaticBusybox(t)
		loader, hello := musl(t)
		p := root{
			files: map[string]string{"/bin/busybox": busybox, loader: loader, "/usr/bin/hello": hello},
			links: map[string]string{"/bin/sh": "/bin/busybox", "/bin/true": "/bin/busybox", "/usr/bin/env": "/bin/busybox", "/bin/ls": "/bin/busybox"},
		}.place(t, who)
		p.with(t, "/tmp/hello.sh", "#!/usr/bin/env sh\nhello\nls /lib\n")
		flags := who.Flags()
		p.runs(t, "musl\n", append(flags, "--", "hello")...)
		p.runs(t, "musl\n"+filepath.Base(loader)+"\n", append(flags, "/tmp/hello.sh")...)
		p.runs(t, "musl\n", append(flags, "--lang", "sh", "-c", "hello")...)
		o := p.do(t, "run", append(flags, "-c", "print(1)", "--lang", "python")...)
		if o.Exit != 127 || !strings.HasPrefix(o.Stderr, `sandglass: error: python: not found: looked for python, python3 in `) {
			t.Errorf("no Python: exit %d, %q", o.Exit, o.Stderr)
		}
		everywhere(t, who, p)
	})
}

// A host as NixOS is: programs in a store, links to it, and no /usr.
func TestNixHost(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const store = "/nix/store/0abc-busybox-1.35"
		links := map[string]string{"/bin/sh": store + "/bin/sh", "/run/current-system/sw": store, "/home/u/.nix-profile": store}
		for _, name := range []string{"sh", "cat", "ls", "env", "true"} {
			links[store+"/bin/"+name] = "busybox"
		}
		p := root{files: map[string]string{store + "/bin/busybox": testkit.StaticBusybox(t)}, links: links}.place(t, who)
		p.path = "/run/current-system/sw/bin:/home/u/.nix-profile/bin"
		p.with(t, "/tmp/hello.sh", "#!/bin/sh\necho \"hello $1\"\n")
		flags := who.Flags()
		p.runs(t, "ran\n", append(flags, "--", "sh", "-c", "echo ran")...)
		p.runs(t, "hello you\n", append(flags, "/tmp/hello.sh", "you")...)
		p.runs(t, "5\n", append(flags, "--lang", "sh", "-c", "echo $((2+3))")...)
		p.runs(t, "ran\n", append(flags, "--", store+"/bin/sh", "-c", "echo ran")...)
		p.runs(t, "sh\n", append(flags, "--", "/run/current-system/sw/bin/ls", "/bin")...)
		everywhere(t, who, p)
	})
}

// A host whose /bin and /lib are directories beside /usr, as Debian's were.
func TestUnmergedHost(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		files := map[string]string{"/bin/sh": "/bin/sh", "/usr/bin/env": "/usr/bin/env", "/bin/true": "/bin/true", "/usr/bin/id": "/usr/bin/id"}
		for _, lib := range libraries(t, "/bin/sh", "/usr/bin/env", "/usr/bin/id") {
			files[lib] = lib
		}
		p := root{files: files}.place(t, who)
		p.with(t, "/tmp/hello.sh", "#!/usr/bin/env sh\nid -u\n")
		flags := who.Flags()
		p.runs(t, "65534\n", append(flags, "/tmp/hello.sh")...)
		p.runs(t, "ran\n", append(flags, "--", "/bin/sh", "-c", "echo ran")...)
		everywhere(t, who, p)
	})
}

// libraries are what ldd(1) lists, by the paths that are in the programs.
func libraries(t *testing.T, programs ...string) (list []string) {
	t.Helper()
	text, err := exec.Command("ldd", programs...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		if strings.HasPrefix(word, "/lib") && !strings.HasSuffix(word, ":") {
			list = append(list, word)
		}
	}
	return list
}

// A host all of whose file systems are read-only.
func TestReadOnlyHost(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := script(t, who, `for m in $(awk '$5 !~ "^/(proc|sys|dev)" { print $5 }' /proc/self/mountinfo); do mount -o remount,bind,ro "$m"; done
if touch /sandglass-test 2>/dev/null || touch /tmp/sandglass-test 2>/dev/null; then echo "it can be written" >&2; exit 9; fi`)
		p.runs(t, "ran\n", append(who.Flags(), "--", "sh", "-c", "echo ran >/tmp/x && cat /tmp/x")...)
		everywhere(t, who, p)
		o := p.do(t, "run", append(who.Flags(), "--result", "/tmp/result.json", "--", "true")...)
		if o.Exit != 125 || !strings.HasPrefix(o.Stderr, "sandglass: error: --result: open /tmp/result.json: read-only file system\nhint: ") {
			t.Errorf("a result: exit %d, %q", o.Exit, o.Stderr)
		}
	})
}
