package limits

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// What the kernel has for the program is what was asked, soft and hard, and
// the program cannot raise it.
func TestRlimitsReadBack(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--open-files 100 --ulimit fsize=3m --ulimit stack=1m --ulimit core=0", "limits")
		const no = "Operation not permitted"
		// Raising core is answered as if done, see the profile.
		want := fmt.Sprintf("core 1 1 %s\nnofile 100 100 %s\nfsize %d %d %s\nstack %d %d %s\nrtprio 0 0 %s\n",
			"raised", no, 3<<20, 3<<20, no, 1<<20, 1<<20, no, no)
		ended(t, o, result.Exited, 0, want)
		held(t, o, "open_files", 100, result.ByRlimit)
		held(t, o, "file_size", 3<<20, result.ByRlimit)
		held(t, o, "stack", 1<<20, result.ByRlimit)
		held(t, o, "core", 0, result.ByRlimit)
	})
}

func TestOpenFiles(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		ended(t, hog(t, who, "--open-files 100", "opens"), result.Exited, 0, "open 100\n")
		ended(t, hog(t, who, "", "opens"), result.Exited, 0, "open 1024\n")
	})
}

func TestFileSize(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--ulimit fsize=1m", "fill /tmp/x 1")
		ended(t, o, result.Exited, 0, fmt.Sprintf("File too large after %d\n", 1<<20))
		o = hog(t, who, "--ulimit fsize=1m", "fill /tmp/x 0")
		ended(t, o, result.Signaled, 128+25, "")
		if o.Result.Signal != 25 {
			t.Errorf("signal %d, want SIGXFSZ", o.Result.Signal)
		}
	})
}

// By whatever way, and in a directory of the host's as well.
func TestFileSizeWays(t *testing.T) {
	const want = "write EFBIG\ntruncate EFBIG\nftruncate EFBIG\nfallocate EFBIG\nappend EFBIG\nsplice EFBIG\nresize EFBIG\nsendfile EFBIG\ncopy EFBIG\n"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, path := range []string{"/tmp/x", "/m/x"} {
			o := script(t, who, "filesize.py", "--ulimit fsize=1m --timeout 60s -v "+everyones(t)+":/m:rw", path, itoa(1<<20))
			ended(t, o, result.Exited, 0, want)
		}
	})
}

// everyones is a directory that any user may write to.
func everyones(t *testing.T) string {
	t.Helper()
	dir := testkit.Dir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// One file that fills the scratch meets a full disk, not a signal.
func TestScratchIsFullBeforeTheFileSize(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--disk 1m", "fill /tmp/x 0")
		if o.Exit != 0 || !strings.HasPrefix(o.Stdout, "No space left on device after ") {
			t.Errorf("exit %d, %q", o.Exit, o.Stdout)
		}
		// A writable mount has no other bound.
		o = hog(t, who, "--disk 1m -v "+everyones(t)+":/m:rw", "fill /m/x 1")
		ended(t, o, result.Exited, 0, fmt.Sprintf("File too large after %d\n", 2<<20))
	})
}

// The stack ends where it was told: deep recursion is a SIGSEGV.
func TestStack(t *testing.T) {
	const deep = `#include <stdio.h>
#include <stdlib.h>
static int down(int n) { volatile char page[4096]; page[0] = (char)n; return n ? down(n - 1) + page[0] : 0; }
int main(int argc, char **argv) { down(atoi(argv[1])); puts("back"); return 0; }
`
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.RunC(t, testkit.Opts{Who: who}, []string{"--ulimit", "stack=1m"}, deep, "200")
		ended(t, o, result.Exited, 0, "back\n")
		o = testkit.RunC(t, testkit.Opts{Who: who}, []string{"--ulimit", "stack=1m"}, deep, "400")
		ended(t, o, result.Signaled, 128+11, "")
	})
}

// A crash with terabytes mapped leaves no core file, and is over at once.
func TestCore(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.RunC(t, testkit.Opts{Who: who}, []string{"--memory", "64m"}, source(t, "B18.c"))
		ended(t, o, result.Signaled, 128+6, "mapped 32 TiB\n")
		prog := testkit.C(t, source(t, "B18.c"))
		o = testkit.Sh(t, who, "cd /tmp; "+testkit.Inside+" >/dev/null; echo $?; find / -xdev -name 'core*' -size +0 -newer /proc/1/stat 2>/dev/null; ls -A /tmp",
			"-v", prog+":"+testkit.Inside)
		ended(t, o, result.Exited, 0, "134\n")
	})
}

// The kernel counts descriptors on their way through sockets for the user. A
// sandbox of an ordinary user that has sent all it may leaves the next one's
// supervisor some, even where the hard limit is the default of both.
func TestDescriptorsOnTheirWay(t *testing.T) {
	testkit.Requires(t, "python3")
	who := testkit.AsUser(t)
	limited := func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 1024; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	path := filepath.Join(testkit.Dir(t), "inflight.py")
	if err := os.WriteFile(path, []byte(source(t, "inflight.py")), 0o644); err != nil {
		t.Fatal(err)
	}
	first, release := testkit.Hold(t, testkit.Opts{Who: who, Setup: limited}, "--timeout", "60s", path)
	if line := first.WaitLine("refused "); line != "refused ETOOMANYREFS" {
		t.Fatalf("%q", line)
	}
	o := testkit.Run(t, testkit.Opts{Who: who, Setup: limited}, "--", "sh", "-c", "ulimit -n")
	ended(t, o, result.Exited, 0, "512\n")
	held(t, o, "open_files", 512, result.ByRlimit)
	release()
	if o := first.Wait(); o.Exit != 0 {
		t.Errorf("exit %d, %q", o.Exit, o.Stderr)
	}
}
