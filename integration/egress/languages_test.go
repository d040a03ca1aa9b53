package egress

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

const hello = "hello from good.example\n"

func TestPython(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		want := map[string]string{"urllib": hello, "requests": hello + "posted\n", "http.client": strings.Repeat(hello, 3), "asyncio": strings.Repeat(hello, 5)}
		for which, text := range want {
			t.Run(which, func(t *testing.T) {
				if which == "requests" {
					testkit.Requires(t, "python3:requests")
				}
				w.enter(t)
				o := w.python(t, who, "clients.py", allow("good.example"), which)
				printed(t, o, text)
				if which == "http.client" {
					one(t, o)
				}
			})
		}
	})
}

// TestOwnResolver: a query by hand, and a connection to what came back.
func TestOwnResolver(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		printed(t, w.python(t, who, "ask.py", allow("v4.good.example:80"), "v4.good.example"), "same True\n198.18\nhello from by.address\n")
	})
}

func TestNode(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		testkit.Requires(t, "node")
		o := w.runFile(t, who, []string{"clients.js"}, allow("good.example"), "node", "/opt/clients.js")
		printed(t, o, hello+hello)
	})
}

// TestGo is Go's own resolver and the libc's.
func TestGo(t *testing.T) {
	testkit.Requires(t, "go")
	dir := testkit.Dir(t)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "gofetch"), "./testdata/gofetch")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		for _, resolver := range []string{"go", "cgo"} {
			o := testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(allow("good.example"), w.ca.flags(),
				[]string{"-e", "GODEBUG=netdns=" + resolver, "-v", filepath.Join(dir, "gofetch") + ":/opt/gofetch", "--", "/opt/gofetch", "https://good.example/"})...)
			printed(t, o, hello)
		}
	})
}

func TestJava(t *testing.T) {
	testkit.Requires(t, "java", "javac")
	dir := testkit.Dir(t)
	path := filepath.Join(dir, "Fetch.java")
	if err := os.WriteFile(path, []byte(testkit.Source(t, testdata, "Fetch.java")), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("javac", "-d", dir, path).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, text)
	}
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		o := testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(allow("good.example"), w.ca.flags(),
			[]string{"--memory", "1g", "-v", dir + ":/opt/java", "--", "java", "-cp", "/opt/java", "Fetch"})...)
		printed(t, o, hello)
	})
}

// TestLibcs is the resolver of glibc and musl in a static program.
func TestLibcs(t *testing.T) {
	dir := testkit.Dir(t)
	path := filepath.Join(dir, "resolve.c")
	if err := os.WriteFile(path, []byte(testkit.Source(t, testdata, "resolve.c")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cc := range []string{"gcc", "musl-gcc"} {
		t.Run(cc, func(t *testing.T) {
			testkit.Requires(t, cc)
			prog, args := filepath.Join(dir, cc), []string{"-o", filepath.Join(dir, cc), path}
			if cc == "musl-gcc" {
				args = append(args, "-static")
			}
			if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", cc, err, text)
			}
			w := newWorld(t)
			for _, who := range []testkit.Who{testkit.AsRoot(t), testkit.AsUser(t)} {
				w.enter(t)
				run := func(name string) testkit.Output {
					return testkit.Run(t, testkit.Opts{Who: who}, append(allow("good.example:80", "nothere.example:80"), "-v", prog+":/opt/resolve", "--", "/opt/resolve", name)...)
				}
				// Both addresses of the name, of each family one.
				printed(t, run("good.example"), hello+hello)
				if o := run("other.example"); o.Exit != 1 || !strings.HasPrefix(o.Stdout, "other.example: Name ") {
					t.Errorf("exit %d, stdout %q, stderr %q", o.Exit, o.Stdout, o.Stderr)
				}
			}
		})
	}
}

// TestImage is a root of the caller's, with an /etc that points elsewhere, and
// musl's resolver in the only program.
func TestImage(t *testing.T) {
	testkit.Requires(t, "musl-gcc")
	root := testkit.Dir(t)
	path := filepath.Join(testkit.Dir(t), "resolve.c")
	if err := os.WriteFile(path, []byte(testkit.Source(t, testdata, "resolve.c")), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("musl-gcc", "-static", "-o", filepath.Join(root, "resolve"), path).CombinedOutput(); err != nil {
		t.Fatalf("musl-gcc: %v\n%s", err, text)
	}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(root, "etc/resolv.conf")
	kinds := map[string]func() error{
		"none": func() error { return nil },
		"file": func() error { return os.WriteFile(conf, []byte("nameserver "+server+"\n"), 0o644) },
		"link": func() error { return os.Symlink("../run/systemd/resolve/stub-resolv.conf", conf) },
	}
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		for kind, make := range kinds {
			os.Remove(conf)
			if err := make(); err != nil {
				t.Fatal(err)
			}
			o := testkit.Run(t, testkit.Opts{Who: who}, append(allow("good.example:80"), root, "/resolve", "good.example")...)
			t.Log(kind)
			printed(t, o, hello+hello)
			connections(t, o, "good.example:80 "+good6+" closed")
		}
	})
}

// runFile runs a command with files of testdata below /opt.
func (w *world) runFile(t *testing.T, who testkit.Who, files []string, flags []string, cmd ...string) testkit.Output {
	t.Helper()
	dir := testkit.Dir(t)
	list := slices.Concat(flags, w.ca.flags())
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(testkit.Source(t, testdata, name)), 0o644); err != nil {
			t.Fatal(err)
		}
		list = append(list, "-v", path+":/opt/"+name)
	}
	return testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(list, []string{"--timeout", "100s", "--"}, cmd)...)
}
