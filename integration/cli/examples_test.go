package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

// onPath is a folder with a command called sandglass: the binary, or for an
// identity that needs it a wrapper that allows weaker limits by name.
func onPath(t *testing.T, who testkit.Who) string {
	t.Helper()
	bin := testkit.Dir(t)
	name := filepath.Join(bin, "sandglass")
	flags := who.Flags()
	if len(flags) == 0 {
		if err := os.Symlink(testkit.Binary(t), name); err != nil {
			t.Fatal(err)
		}
		return bin
	}
	script := "#!/bin/sh\n[ \"$1\" = run ] && { shift; set -- run " + strings.Join(flags, " ") + " \"$@\"; }\n" +
		"[ \"$1\" = session ] && { shift; set -- session " + strings.Join(flags, " ") + " \"$@\"; }\n" +
		"[ \"$1\" = check ] && { shift; set -- check " + strings.Join(flags, " ") + " \"$@\"; }\n" +
		"exec " + testkit.Binary(t) + " \"$@\"\n"
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// checkout is a copy of the examples and the libraries that who may read and run: the source may
// lie where only its owner may look.
func checkout(t *testing.T, who testkit.Who) string {
	t.Helper()
	dir := testkit.Dir(t)
	for _, part := range []string{"examples", "clients"} {
		if text, err := exec.Command("cp", "-r", filepath.Join(testkit.Root(t), part), dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if text, err := exec.Command("chmod", "-R", "a+rX", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	give(t, who, dir)
	return dir
}

// outcome is what a program of the host's came to.
type outcome struct {
	exit           int
	stdout, stderr string
}

// hostRun runs a program of the host's as who, with bin first on PATH.
func hostRun(t *testing.T, who testkit.Who, bin, dir string, argv ...string) outcome {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=/tmp"}
	if os.Geteuid() == 0 && !who.IsRoot() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(who.UID), Gid: uint32(who.GID)}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatalf("%q: %v", argv, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// The rule's own lines. Root's are run as they stand.
func TestRuleExamples(t *testing.T) {
	testkit.Requires(t, "python3", "node")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir, bin := checkout(t, who), onPath(t, who)
		for _, c := range []struct {
			argv []string
			want outcome
		}{
			{[]string{"examples/rule/run.sh"}, outcome{0, "hello from sandglass\nuser 65534 files ['main.py']\n", ""}},
			{[]string{"examples/rule/run.py"}, outcome{0, "45\n", ""}},
			{[]string{"examples/rule/run.py", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"}, outcome{7, "out\n", "err\n"}},
			{[]string{"examples/rule/run.js"}, outcome{0, "1,4,9\n", ""}},
			{[]string{"examples/rule/run.js", "console.log('out'); console.error('err'); process.exit(7)"}, outcome{7, "out\n", "err\n"}},
			{[]string{"examples/rule/run.py", "import socket; socket.create_connection(('127.0.0.1', 9), 5)"}, outcome{1, "", "ConnectionRefusedError"}},
			{[]string{"examples/rule/run.py", "print(open('/etc/hostname').read())"}, outcome{0, "sandglass\n\n", ""}},
		} {
			got := hostRun(t, who, bin, dir, append([]string{filepath.Join(dir, c.argv[0])}, c.argv[1:]...)...)
			if strings.Contains(got.stderr, "Traceback") {
				if strings.Contains(got.stderr, c.want.stderr) && c.want.stderr != "" {
					got.stderr = c.want.stderr
				}
			}
			if got != c.want {
				t.Errorf("%q:\ngot  %+v\nwant %+v", c.argv, got, c.want)
			}
		}
	})
}

// A user without a control group gets a refusal that names the way on.
func TestRuleLineForAUserIsRefusedByName(t *testing.T) {
	who := testkit.AsUser(t)
	if who.Limited() {
		testkit.Skip(t, "a user without control groups", "delegated ones")
	}
	dir := checkout(t, who)
	bin := testkit.Dir(t)
	if err := os.Symlink(testkit.Binary(t), filepath.Join(bin, "sandglass")); err != nil {
		t.Fatal(err)
	}
	got := hostRun(t, who, bin, dir, filepath.Join(dir, "examples/rule/run.sh"))
	what, hints := complaint(t, testkit.Output{Stdout: got.stdout, Stderr: got.stderr})
	want := "memory limit: "
	if testkit.CgroupVersion("memory") == "cgroup2" {
		want = "memory, pids, cpu limits: own cgroup "
	}
	if got.exit != 125 || !strings.HasPrefix(what, want) {
		t.Errorf("exit %d, %s", got.exit, what)
	}
	var named bool
	for _, h := range hints {
		list, ok := strings.CutPrefix(h, "--allow-degraded ")
		named = named || ok && strings.Contains(list, "memory") && strings.Contains(list, "cpu") && strings.Contains(list, "pids")
	}
	if !named {
		t.Errorf("no hint names --allow-degraded with memory, cpu and pids: %q", hints)
	}
}

// Model code that loops past the end: the limit stops it, and where the caller
// is quicker than the limit, the caller's kill leaves nothing behind.
func TestRuleExamplesStopALoop(t *testing.T) {
	testkit.Requires(t, "python3", "node")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir, bin := checkout(t, who), onPath(t, who)
		marker := "looping-" + who.Name + "-" + filepath.Base(dir)
		js := filepath.Join(dir, "examples/rule/run.js")
		source, err := os.ReadFile(js)
		if err != nil {
			t.Fatal(err)
		}
		quick := bytes.Replace(source, []byte("timeout: 15_000"), []byte("timeout: 700"), 1)
		if bytes.Equal(quick, source) {
			t.Fatal("run.js has no timeout: 15_000")
		}
		if err := os.WriteFile(js+".quick.js", quick, 0o755); err != nil {
			t.Fatal(err)
		}
		loop := "console.log('start'); process.on('SIGTERM', () => {}); for (;;); // " + marker
		got := hostRun(t, who, bin, dir, "node", js+".quick.js", loop)
		if got.exit != 1 || !strings.HasPrefix(got.stderr, "stopped by the caller: ") {
			t.Errorf("the caller's kill: %+v", got)
		}
		if left := testkit.Processes(marker); len(left) > 0 {
			t.Errorf("still running after the caller's kill: %q", left)
		}
		// As it stands the limit comes first: timeout 10, and sandglass's own 10 s.
		got = hostRun(t, who, bin, dir, js, loop)
		if got.exit != 124 || got.stdout != "start\n" {
			t.Errorf("the limit: %+v", got)
		}
		if left := testkit.Processes(marker); len(left) > 0 {
			t.Errorf("still running after the limit: %q", left)
		}
	})
}

// The snippets of make demo, with their results compared.
func TestDemo(t *testing.T) {
	testkit.Requires(t, "python3", "node", "gcc")
	testkit.ImageTool(t) // lies beside it
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := checkout(t, who)
		got := hostRun(t, who, "/usr/bin", dir, "/usr/bin/env", "XDG_CACHE_HOME=/dev/null", filepath.Join(dir, "examples/demo.sh"), testkit.Binary(t))
		if got.exit != 0 || !strings.HasSuffix(got.stdout, "demo: 5 sandboxes, all results right\n") {
			t.Errorf("exit %d\n%s\n%s", got.exit, got.stdout, got.stderr)
		}
		if note := strings.Contains(got.stdout, "NOTE: this user has no control group"); note == who.Limited() {
			t.Errorf("the note about weaker limits: %v", note)
		}
		// Packages cannot be had here: it says so, and goes on with this host's Python.
		if !strings.Contains(got.stdout, "the image is made of this host's own Python") || !strings.Contains(got.stdout, "ok    rule: output is right\n") {
			t.Errorf("without packages: %s", got.stdout)
		}
		// The demo can fail: with a wrong row in its input it does.
		data := filepath.Join(dir, "examples/data/trips.csv")
		text, err := os.ReadFile(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(data, bytes.Replace(text, []byte("Central,231"), []byte("Central,531"), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		got = hostRun(t, who, "/usr/bin", dir, "/usr/bin/env", "XDG_CACHE_HOME=/dev/null", filepath.Join(dir, "examples/demo.sh"), testkit.Binary(t))
		if got.exit != 1 || !strings.Contains(got.stdout, "WRONG report: report.md arrived and is right") {
			t.Errorf("with wrong input: exit %d\n%s", got.exit, got.stdout)
		}
	})
}

// The data set is what its generator makes, in a sandbox.
func TestDataSetIsFresh(t *testing.T) {
	testkit.Requires(t, "python3")
	who := testkit.AsUser(t)
	root := testkit.Root(t)
	dir := own(t, who)
	script := put(t, who, 0o644, read(t, filepath.Join(root, "examples/data/generate.py")), own(t, who), "generate.py")
	out := testkit.Run(t, testkit.Opts{Who: who}, "--out", dir, script)
	if out.Exit != 0 {
		t.Fatalf("exit %d %s", out.Exit, out.Stderr)
	}
	if read(t, dir+"/trips.csv") != read(t, filepath.Join(root, "examples/data/trips.csv")) {
		t.Error("examples/data/trips.csv is not what generate.py writes")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
