package escape

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func TestCallersEnvironmentIsNotPassed(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		opts := testkit.Opts{Who: who, Env: []string{
			"API_TOKEN=hunter2-secret", "AWS_SECRET_ACCESS_KEY=hunter2-secret", "LD_PRELOAD=/hunter2-secret.so", "BASH_ENV=/hunter2-secret",
			"PYTHONPATH=/hunter2-secret", "SSH_AUTH_SOCK=/hunter2-secret", "HOME=/hunter2-secret", "GODEBUG=hunter2-secret=1", "IFS=hunter2-secret",
			"LD_LIBRARY_PATH=/hunter2-secret", "GLIBC_TUNABLES=hunter2-secret", "TMPDIR=/hunter2-secret", "LANG=hunter2-secret",
		}}
		o := must(t, testkit.Run(t, opts, "-e", "GIVEN=value", "--", "/usr/bin/env"))
		got := strings.Split(strings.TrimSpace(o.Stdout), "\n")
		sort.Strings(got)
		var names []string
		for _, e := range got {
			name, _, _ := strings.Cut(e, "=")
			names = append(names, name)
		}
		for _, want := range []string{"GIVEN=value", "HOME=/home/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp", "USER=sandbox"} {
			if !strings.Contains(o.Stdout, want+"\n") && !(strings.HasPrefix(want, "USER=") && strings.Contains(o.Stdout, "USER=")) {
				t.Errorf("%s is missing: %q", want, got)
			}
		}
		for _, name := range names {
			if !allowedNames[name] {
				t.Errorf("%s is set inside", name)
			}
		}
		all := must(t, testkit.Run(t, opts, "--", "sh", "-c", "cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '"))
		if strings.Contains(all.Stdout+all.Stderr+o.Stdout, "hunter2-secret") {
			t.Errorf("a value of the caller's shows inside: %q", all.Stdout)
		}
	})
}

// allowedNames are sandglass's own few. The thread counts tell libraries how
// many processors the run has; LSAN_OPTIONS that it cannot be traced.
var allowedNames = map[string]bool{
	"GIVEN": true, "HOME": true, "LANG": true, "PATH": true, "TMPDIR": true, "USER": true, "LOGNAME": true, "PWD": true,
	"OMP_NUM_THREADS": true, "OPENBLAS_NUM_THREADS": true, "MKL_NUM_THREADS": true, "GOMAXPROCS": true, "LSAN_OPTIONS": true,
	"NUMEXPR_NUM_THREADS": true, "ASAN_OPTIONS": true, "HOSTNAME": true, "SHELL": true, "TERM": true, "UV_THREADPOOL_SIZE": true,
}

// Init's own environment is a word or two of ours from its start: nothing of the
// caller's is there to be read.
func TestInitsEnvironmentIsOurs(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		testkit.Requires(t, "root") // to read it from the host
		l := hold(t, testkit.Opts{Who: who, Env: []string{"API_TOKEN=hunter2-secret"}}, "true")
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", l.init))
		want := "GOMAXPROCS=1\x00"
		if who.UID != 0 && hostUID(t, l.init, "Uid") != who.UID { // it has subordinate ids
			want += "SANDGLASS_IDS=later\x00"
		}
		if err != nil || string(text) != want {
			t.Errorf("environment of init: %q, %v", text, err)
		}
	})
}

// A descriptor that the caller left open, without close-on-exec, is a way to
// the host's files past every mount (CVE-2024-21626). One is far above what a
// loop over the first thousand would close.
func TestCallersDescriptorsAreClosed(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		write(t, dir+"/secret", "secret")
		root, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		secret, err := os.OpenFile(dir+"/secret", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer secret.Close()
		files := make([]*os.File, 2048-4+1) // Files[0] is descriptor 4
		files[0], files[1], files[6], files[96], files[2044] = root, secret, root, secret, root
		opts := testkit.Opts{Who: who, Files: files}
		for _, extra := range [][]string{nil, {"-i"}} {
			o := must(t, testkit.Run(t, opts, append(extra, "--", "sh", "-c", "cd /proc/self/fd; echo *; ls -l /proc/$$/fd; :")...))
			// Not in a pipeline, whose pipe the shell closes while ls looks.
			lines := strings.Split(o.Stdout, "\n")
			// The shell's own descriptor on the directory is the fourth at most.
			if got := strings.TrimSuffix(lines[0], " 3"); got != "0 1 2" {
				t.Errorf("open descriptors %q, want 0 1 2", lines[0])
			}
			for _, l := range lines[1:] {
				l = l[strings.LastIndexByte(l, ' ')+1:]
				if l != "0" && l != "" && !strings.HasPrefix(l, "pipe:") {
					t.Errorf("a descriptor leads to %q", l)
				}
			}
		}
		names := []string{"list:/proc/self/fd/6", "read:/proc/self/fd/5", "list:/proc/self/fd/10", "list:/proc/self/fd/2048"}
		numbers := []string{call("fchdir", ":10"), call("fchdir", ":2048"), call("dup", ":2048"), call("close", ":2048")}
		o := must(t, testkit.RunC(t, opts, nil, trySource, slices.Concat(names, numbers)...))
		want := strings.Join(names, " ENOENT\n") + " ENOENT\n" + strings.Join(numbers, " EBADF\n") + " EBADF\n"
		if o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
}

// The program's own three are pipes of the sandbox's, whatever the caller's
// are: a program cannot type into a terminal or truncate a file that it only
// has behind a pipe.
func TestStreamsAreNotTheCallersOwn(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		out, err := os.Create(dir + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if err := os.Chmod(dir+"/out", 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := out.WriteString("before\n"); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(dir + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		must(t, testkit.Run(t, testkit.Opts{Who: who, Stdin: in, Stdout: out, Stderr: out}, "-i", "--", "sh", "-c",
			": >/proc/self/fd/1; readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 | sed 's/:.*//'; : >/dev/stderr"))
		text, err := os.ReadFile(dir + "/out")
		if err != nil || !strings.HasPrefix(string(text), "before\npipe\npipe\npipe\n") {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// A working directory by way of a descriptor is how containers were left
// (CVE-2024-21626): refused, or inside.
func TestWorkingDirectoryStaysInside(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		root, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		dir := testkit.Dir(t)
		for _, n := range []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12} {
			o := testkit.Run(t, testkit.Opts{Who: who, Dir: dir, Files: []*os.File{root, root, root}}, "-w", fmt.Sprintf("/proc/self/fd/%d", n), "--", "sh", "-c", "pwd -P; ls /root /home ..")
			inside(t, o, "fd "+fmt.Sprint(n))
		}
		for _, w := range []string{"/proc/self/cwd", "/proc/1/cwd", "/proc/1/root", "/proc/self/root", "/proc/thread-self/fd/4", "/dev/fd/4", "..", "../..", "/../..", "/work/../../..", "/proc/self/task/1/root"} {
			o := testkit.Run(t, testkit.Opts{Who: who, Dir: dir, Files: []*os.File{root}}, "-w", w, "--", "sh", "-c", "pwd -P; ls /root /home ..")
			inside(t, o, w)
		}
	})
}

// inside accepts a refusal, and a run whose directory is in the sandbox's root.
func inside(t *testing.T, o testkit.Output, what string) {
	t.Helper()
	if o.Exit == 125 && o.Stdout == "" && strings.HasPrefix(o.Stderr, "sandglass: error: ") {
		return
	}
	first, _, _ := strings.Cut(o.Stdout, "\n")
	if !strings.HasPrefix(first, "/") || strings.Contains(first, "unreachable") || strings.Contains(o.Stdout, "cloudsdk") || strings.Contains(o.Stdout, "boot") {
		t.Errorf("-w %s: exit %d, %q, %q", what, o.Exit, o.Stdout, o.Stderr)
	}
}
