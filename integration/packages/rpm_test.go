package packages

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// rpm itself reads the package, installs it in a root of its own, finds every file
// as the package has it, and removes all of them again. Its scripts are not run,
// for there is no shell in that root: see TestScripts.
func TestRPM(t *testing.T) {
	testkit.Requires(t, "root", "amd64", "rpm")
	dir, prefix := made(t)
	pkg := filepath.Join(dir, prefix+"amd64.rpm")
	root, empty := testkit.Dir(t), testkit.Dir(t)
	// A database below the root, and none for what needs none: not a host's own.
	rpm := func(args ...string) string {
		t.Helper()
		return command(t, "rpm", append([]string{"--root=" + root, "--dbpath=/var/lib/rpm"}, args...)...)
	}
	if got := command(t, "rpm", "--dbpath="+empty, "-K", "--nosignature", pkg); got != pkg+": digests OK\n" {
		t.Errorf("rpm -K: %q", got)
	}
	for line := range strings.Lines(command(t, "rpm", "--dbpath="+empty, "-qp", "--nosignature", "--requires", "--conflicts", "--obsoletes", "--triggers", pkg)) {
		if !strings.HasPrefix(line, "rpmlib(") { // a feature of rpm itself
			t.Errorf("it asks for %q", line)
		}
	}
	rpm("-i", "--nosignature", "--noscripts", "--ignorearch", pkg)
	if got := rpm("-V", "--nosignature", "--noscripts", "sandglass"); got != "" {
		t.Errorf("rpm -V: %s", got)
	}
	installedIn(t, root, "rpm")
	rpm("-e", "--noscripts", "sandglass")
	for path := range onDisk(t, root).files {
		if strings.Contains(path, "sandglass") {
			t.Errorf("%s is left", path)
		}
	}
}

// installedIn checks that a root has the files of a package, and starts what was
// installed.
func installedIn(t *testing.T, root, format string) {
	t.Helper()
	var names []string
	for name, e := range onDisk(t, filepath.Join(root, "usr")).files {
		if !e.dir {
			names = append(names, strings.TrimPrefix(name, "/"))
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(expected(t, format))); !slices.Equal(names, want) {
		t.Errorf("installed: %q\nwant %q", names, want)
	}
	bin := filepath.Join(root, "usr/bin/sandglass")
	if out := command(t, bin, "run", "--", "/bin/echo", "hello"); out != "hello\n" {
		t.Errorf("run: %q", out)
	}
	// It finds the second binary beside itself.
	if out := command(t, bin, "image", "--help"); !strings.Contains(out, "sandglass image") {
		t.Errorf("image --help: %q", out)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/bin/sandglass-image")); err != nil {
		t.Error(err)
	}
}
