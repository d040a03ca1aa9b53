package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// standIns answer for what a host with all of compat would have. What is called
// by its path is laid over the host's own in a mount namespace of the test's.
var standIns = map[string]string{
	"python3":   `for w; do [ "$w" != "$LACKS" ] || exit 1; done`,
	"perl":      `[ "$1" != "-M$LACKS" ]`,
	"ldconfig":  `[ "$LACKS" = libopenblas.so.0 ] || echo "	libopenblas.so.0 (libc6,x86-64) => /lib/libopenblas.so.0"`,
	"apt-get":   "echo apt-get \"$@\"\nfor p; do case $p in postgresql*) : >\"$p.deb\" ;; esac; done\n[ \"$LACKS\" != network ]",
	"apt-cache": `echo postgresql; echo "  Depends: postgresql-15"; echo "  Suggests: postgresql-doc"`,
	"dpkg":      `case $2 in "$LACKS" | libllvm*) exit 1 ;; esac`,
	"dpkg-deb":  `if [ "$1" = -x ]; then mkdir -p usr; echo "$2" >>usr/unpacked; else echo "locales | locales-all, libpq5 (>= 15~), ssl-cert (>= 1), libllvm14, libxml2 (>= 2.7.4)"; fi`,
}

// noCalls are commands that need only be there.
const noCalls = "npm tsc strace gdb curl free gawk jq make g++ javac ruby php lua5.4 Rscript chromium zsh fish groff man"

// compatHost is a copy of hack/setup.sh whose build directory is its own, and
// the stand-ins beside it. It returns the script and theirs.
func compatHost(t *testing.T) (setup, stub string) {
	t.Helper()
	dir := testkit.Dir(t)
	setup, stub = filepath.Join(dir, "hack/setup.sh"), filepath.Join(dir, "stub")
	for _, d := range []string{"hack", "stub", "build"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{setup: read(t, filepath.Join(testkit.Root(t), "hack/setup.sh"))}
	for name, text := range standIns {
		files[filepath.Join(stub, name)] = "#!/bin/sh\n" + text + "\n"
	}
	for name := range strings.FieldsSeq(noCalls) {
		files[filepath.Join(stub, name)] = "#!/bin/sh\n"
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return setup, stub
}

// compat runs the script where all but one thing is there.
func compat(t *testing.T, setup, stub, lacks string) (string, error) {
	t.Helper()
	script := fmt.Sprintf(`set -e
if [ "$LACKS" = jq ]; then
  mkdir %[1]s/white && mknod %[1]s/white/jq c 0 0 # an overlay's word for a file that is not there
  mount -t overlay overlay -o lowerdir=%[1]s/white:/usr/bin /usr/bin
fi
for f in /usr/bin/python3 /usr/bin/perl /sbin/ldconfig; do mount --bind %[1]s/"${f##*/}" $f; done
exec %[2]s compat 2>&1`, stub, setup)
	cmd := exec.Command("unshare", "-m", "bash", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+stub+":/usr/bin:/bin:/usr/sbin:/sbin", "LACKS="+lacks)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// hack/setup.sh compat installs what is missing of modules, libraries and
// commands, and that alone, and has PostgreSQL in build/ once and whole.
func TestSetupCompat(t *testing.T) {
	testkit.Requires(t, "root", "bash", "python3", "perl", "/usr/bin/convert")
	if _, err := os.Stat("/usr/include/seccomp.h"); err != nil {
		testkit.Skip(t, "libseccomp", err.Error())
	}
	setup, stub := compatHost(t)
	server := filepath.Join(filepath.Dir(stub), "build/postgresql")
	const (
		unpack  = "setup: unpacking postgresql-15 into build/postgresql\napt-get download -q postgresql-15 postgresql-client-15\n"
		install = "setup: installing %s\napt-get update -q\napt-get install -q -y --no-install-recommends %[1]s\n"
	)
	// Nothing of a download that failed is taken for the server.
	if out, err := compat(t, setup, stub, "network"); err == nil || out != unpack {
		t.Errorf("without a network: %v, %q", err, out)
	}
	if _, err := os.Stat(server); !os.IsNotExist(err) {
		t.Errorf("what a failed download left: %v", err)
	}
	out, err := compat(t, setup, stub, "libxml2")
	if want := unpack + fmt.Sprintf(install, "libxml2"); err != nil || out != want {
		t.Errorf("the first time: %v\ngot\n%s\nwant\n%s", err, out, want)
	}
	if got, want := read(t, filepath.Join(server, "usr/unpacked")), "postgresql-15.deb\npostgresql-client-15.deb\n"; got != want {
		t.Errorf("unpacked %q, want %q", got, want)
	}
	if list, err := filepath.Glob(server + "*/*.deb"); err != nil || len(list) != 0 {
		t.Errorf("%q are left, %v", list, err)
	}
	if st, err := os.Stat(server); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the directory: %v, %v", st, err)
	}
	for lacks, want := range map[string]string{
		"":                 "",
		"numpy":            "python3-numpy",
		"threads":          "perl",
		"libopenblas.so.0": "libopenblas0-pthread",
	} {
		if want != "" {
			want = fmt.Sprintf(install, want)
		}
		if out, err := compat(t, setup, stub, lacks); err != nil || out != want {
			t.Errorf("without %q: %v\ngot\n%s\nwant\n%s", lacks, err, out, want)
		}
	}
	if err := os.Remove(filepath.Join(stub, "jq")); err != nil {
		t.Fatal(err)
	}
	if out, err := compat(t, setup, stub, "jq"); err != nil || out != fmt.Sprintf(install, "jq") {
		t.Errorf("without jq: %v, %q", err, out)
	}
}
