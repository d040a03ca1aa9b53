package plan

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"

	"golang.org/x/sys/unix"
)

func spec(t *testing.T, set func(*policy.Spec)) policy.Spec {
	t.Helper()
	s := policy.Default()
	s.Program.Command = []string{"true"}
	set(&s)
	return s
}

func mustBuild(t *testing.T, set func(*policy.Spec)) *Plan {
	t.Helper()
	p, err := Build(spec(t, set))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refusedWith builds and wants a refusal whose text has the words.
func refusedWith(t *testing.T, exit int, words string, set func(*policy.Spec)) {
	t.Helper()
	_, err := Build(spec(t, set))
	r, ok := err.(*refusal.Error)
	if !ok {
		t.Errorf("%q: got %v, want a refusal", words, err)
		return
	}
	if !strings.Contains(r.What, words) || r.Exit != exit || len(r.Hints) == 0 {
		t.Errorf("got %q exit %d hints %v, want %q exit %d and a hint", r.What, r.Exit, r.Hints, words, exit)
	}
}

func write(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommand(t *testing.T) {
	p := mustBuild(t, func(s *policy.Spec) {
		s.Program.Command = []string{"sort", "-n"}
		s.Env = []string{"PATH=/a:rel::/b", "X=1"}
	})
	if want := []string{"/a/sort", "/b/sort"}; !reflect.DeepEqual(p.Program.Paths, want) {
		t.Errorf("paths %v, want %v: relative entries of PATH must be left out", p.Program.Paths, want)
	}
	if want := []string{"sort", "-n"}; !reflect.DeepEqual(p.Program.Argv, want) {
		t.Errorf("argv %v", p.Program.Argv)
	}
}

// TestEnvironment: a fixed list and what -e names; nothing of the caller's.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "canary")
	p := mustBuild(t, func(s *policy.Spec) { s.Env = []string{"LANG=de_DE", "A=b=c"} })
	var names []string
	for _, kv := range p.Program.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	if want := []string{"PATH", "HOME", "USER", "TMPDIR", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "LSAN_OPTIONS", "LANG", "A"}; !reflect.DeepEqual(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	if !slices.Contains(p.Program.Env, "LANG=de_DE") || !slices.Contains(p.Program.Env, "A=b=c") {
		t.Errorf("env %v", p.Program.Env)
	}
}

// As many library threads as the CPU limit feeds, and never more than fit.
func TestThreadPresets(t *testing.T) {
	for _, c := range []struct {
		milli, pids int64
		want        string
	}{{500, 64, "1"}, {1000, 64, "1"}, {1001, 64, "2"}, {64000, 64, "32"}, {8000, 1, "1"}} {
		p := mustBuild(t, func(s *policy.Spec) { s.Limits.MilliCPU, s.Limits.Pids = c.milli, c.pids })
		if !slices.Contains(p.Program.Env, "OPENBLAS_NUM_THREADS="+c.want) {
			t.Errorf("%d thousandths of a CPU, %d pids: %v, want %s", c.milli, c.pids, p.Program.Env, c.want)
		}
	}
}

func TestFiles(t *testing.T) {
	elf, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		argv []string // after the interpreter
		exec bool
	}{
		{write(t, "a.sh", "echo", 0o600), []string{"/code/a.sh", "x"}, false},
		{write(t, "noext", "#!/bin/sh -e\necho", 0o600), []string{"-e", "/code/noext", "x"}, true},
		{write(t, "env", "#!/usr/bin/env sh\necho", 0o600), []string{"/code/env", "x"}, true},
	} {
		p := mustBuild(t, func(s *policy.Spec) { s.Program = policy.Program{File: c.path, Args: []string{"x"}} })
		if got := p.Program.Argv[1:]; !reflect.DeepEqual(got, c.argv) || p.Input.Code.Exec != c.exec {
			t.Errorf("%s: argv %v exec %v", c.path, p.Program.Argv, p.Input.Code.Exec)
		}
	}
	bin := write(t, "prog", string(elf[:4096]), 0o600)
	p := mustBuild(t, func(s *policy.Spec) { s.Program = policy.Program{File: bin, Args: []string{"x"}} })
	if want := []string{"/code/prog", "x"}; !reflect.DeepEqual(p.Program.Argv, want) || !p.Input.Code.Exec {
		t.Errorf("ELF: argv %v", p.Program.Argv)
	}
}

// What a file says goes before what it is called: a known language always, an
// interpreter that nobody knows when it is here.
func TestShebangBeforeExtension(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"#!/usr/bin/env bash\n", "bash"},
		{"#!/bin/bash\n", "bash"},
		{"#!/bin/sh\n", "sh"},
		{"#!/usr/bin/env no-such-shell\n", "sh"},
		{"echo x\n", "sh"},
	} {
		file := write(t, "x.sh", c.line, 0o644)
		p := mustBuild(t, func(s *policy.Spec) { s.Program = policy.Program{File: file} })
		want, err := filepath.EvalSymlinks("/bin/" + c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := filepath.EvalSymlinks(p.Program.Argv[0]); got != want {
			t.Errorf("%q: %v, want %s", c.line, p.Program.Argv, want)
		}
	}
	old := os.Getenv("PATH")
	t.Setenv("PATH", "/nowhere")
	refusedWith(t, 127, `tclsh: not found: looked for tclsh in /nowhere`, func(s *policy.Spec) {
		s.Program = policy.Program{File: write(t, "ruby.sh", "#!/usr/bin/env tclsh\nputs 1\n", 0o644)}
	})
	t.Setenv("PATH", old)
	// One that is here, but that nothing of the caller's leads to.
	here := write(t, "fish", "\x7fELF", 0o755)
	refusedWith(t, 126, "PATH does not lead to it", func(s *policy.Spec) {
		s.Program = policy.Program{File: write(t, "x.sh", "#!"+here+"\n", 0o644)}
	})
	t.Setenv("PATH", filepath.Dir(here))
	p := mustBuild(t, func(s *policy.Spec) { s.Program = policy.Program{File: write(t, "x.sh", "#!"+here+"\n", 0o644)} })
	if p.Program.Argv[0] != here {
		t.Errorf("on PATH: %v, want %s", p.Program.Argv, here)
	}
}

// A script of a directory that -v shows runs from there, beside its modules.
func TestScriptInAMount(t *testing.T) {
	dir := filepath.Dir(write(t, "main.py", "import helper", 0o644))
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir+"/sub", 0o755))
	must(os.WriteFile(dir+"/sub/run", []byte("#!/bin/sh -e\n"), 0o644))
	must(os.Symlink("sub/run", dir+"/link"))
	for _, c := range []struct {
		file   string
		mounts []policy.Mount
		want   string
	}{
		{"main.py", []policy.Mount{{Source: dir, Target: "/work"}}, "/work/main.py"},
		{"sub/run", []policy.Mount{{Source: dir, Target: "/work"}}, "/work/sub/run"},
		{"link", []policy.Mount{{Source: dir, Target: "/work"}}, "/work/sub/run"},
		{"main.py", []policy.Mount{{Source: dir + "/sub", Target: "/s"}}, "/code/main.py"},
		{"main.py", []policy.Mount{{Source: dir + "/main.py", Target: "/t/m.py"}}, "/t/m.py"},
		{"sub/run", []policy.Mount{{Source: dir, Target: "/w"}, {Source: dir + "/sub", Target: "/w/sub"}}, "/w/sub/run"},
		{"sub/run", []policy.Mount{{Source: dir, Target: "/w"}, {Source: "/usr/share", Target: "/w/sub"}}, "/code/run"}, // covered
		{"main.py", nil, "/code/main.py"},
	} {
		p := mustBuild(t, func(s *policy.Spec) { s.Program, s.Mounts = policy.Program{File: dir + "/" + c.file}, c.mounts })
		if argv := p.Program.Argv; argv[len(argv)-1] != c.want || (p.Input.Code == nil) == strings.HasPrefix(c.want, "/code/") {
			t.Errorf("%s: argv %v, want %s", c.file, argv, c.want)
		}
	}
}

func TestFilesRefused(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo.sh")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	large := write(t, "large.sh", "", 0o600)
	if err := os.Truncate(large, maxCopy+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, words string
		exit        int
	}{
		{write(t, "data", "hello", 0o600), "cannot tell how to run", 126},
		{"/nonexistent/x.sh", "no such file", 125},
		{large, "larger than 256 MiB", 125},
		{write(t, "lost", "#!/no/such/interpreter\n", 0o600), "/no/such/interpreter", 127},
	} {
		refusedWith(t, c.exit, c.words, func(s *policy.Spec) { s.Program = policy.Program{File: c.file} })
	}
	// A FIFO must not block the open.
	if _, err := Build(spec(t, func(s *policy.Spec) { s.Program = policy.Program{File: fifo} })); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("FIFO: %v", err)
	}
}

func TestCode(t *testing.T) {
	p := mustBuild(t, func(s *policy.Spec) {
		s.Program = policy.Program{Code: []byte("echo"), Lang: "sh", Args: []string{"-c"}}
	})
	if want := []string{"/code/main.sh", "-c"}; !reflect.DeepEqual(p.Program.Argv[1:], want) {
		t.Errorf("argv %v", p.Program.Argv)
	}
	if p.Input.Code.Size != 4 || p.Input.Code.Exec {
		t.Errorf("code %+v", p.Input.Code)
	}
	refusedWith(t, 127, "klingon", func(s *policy.Spec) { s.Program = policy.Program{Code: []byte("x"), Lang: "klingon"} })
}

// TestMountSources: what the source really is decides, not what it is called.
func TestMountSources(t *testing.T) {
	dir := t.TempDir()
	sock := filepath.Join(dir, "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fifo := filepath.Join(dir, "f")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(name, target string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for source, words := range map[string]string{
		sock:                          "socket",
		link("to-sock", sock):         "socket",
		fifo:                          "named pipe",
		link("to-null", "/dev/null"):  "refused",
		link("to-root", "/"):          "refused",
		link("to-proc", "/proc/self"): "refused",
		link("dangling", "none"):      "no such file",
		link("loop", "loop"):          "",
		filepath.Join(dir, "missing"): "no such file",
	} {
		refusedWith(t, 125, words, func(s *policy.Spec) { s.Mounts = []policy.Mount{{Source: source, Target: "/data"}} })
	}
	p := mustBuild(t, func(s *policy.Spec) {
		s.Mounts = []policy.Mount{{Source: sock, Target: "/data"}}
		s.AllowMounts = []string{sock}
	})
	if p.Input.Mounts[0].Path != sock {
		t.Errorf("allowed by name: %+v", p.Input.Mounts)
	}
}

// TestMountPinned: the plan holds the inode that was looked at.
func TestMountPinned(t *testing.T) {
	dir := t.TempDir()
	p := mustBuild(t, func(s *policy.Spec) { s.Mounts = []policy.Mount{{Source: dir, Target: "/data", Write: true}} })
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	m := p.Input.Mounts[0]
	if m.Ino != st.Ino || m.Dev != uint64(st.Dev) || !m.Dir || !m.Write || !m.IDMap || !m.Open {
		t.Errorf("got %+v", m)
	}
}

func TestLimits(t *testing.T) {
	p := mustBuild(t, func(s *policy.Spec) { s.Limits.MilliCPU = 500; s.Limits.OpenFiles = 64 })
	c := p.Cgroup
	if c.CPUQuotaUS != 50000 || c.CPUPeriodUS != 100000 || c.MemoryMax != 256<<20 || c.PidsMax != 64 {
		t.Errorf("cgroup %+v", c)
	}
	for _, r := range p.Rlimits {
		switch r.Resource {
		case unix.RLIMIT_CORE:
			if r.Soft != 1 || r.Hard != 1 {
				t.Errorf("%+v", r)
			}
		case unix.RLIMIT_RTPRIO:
			if r.Soft != 0 || r.Hard != 0 {
				t.Errorf("%+v", r)
			}
		case unix.RLIMIT_NOFILE:
			if r.Soft != 64 || r.Hard != 64 {
				t.Errorf("%+v", r)
			}
		case unix.RLIMIT_FSIZE:
			if r.Soft != 65<<20 { // above --disk, so that a full scratch is ENOSPC
				t.Errorf("%+v", r)
			}
		}
	}
	refusedWith(t, 125, "not a block device", func(s *policy.Spec) { s.Limits.IO = []policy.IOLimit{{Device: "/dev/null", ReadBPS: 1 << 20}} })
	refusedWith(t, 125, "no such file", func(s *policy.Spec) { s.Limits.IO = []policy.IOLimit{{Device: "/dev/none", ReadBPS: 1 << 20}} })
}

// TestExplainStable: the same flags give the same bytes, and nothing of the
// process or the moment is in them.
func TestExplainStable(t *testing.T) {
	explain := func() string {
		p := mustBuild(t, func(s *policy.Spec) { s.Env = []string{"A=1"} })
		e, err := p.Explain(Host{Own: true, Mapped: true}, Cgroup{Tree: "v2", Limits: map[string]string{"memory": "/x", "pids": "/y"}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + e.Text()
	}
	first := explain()
	for range 5 {
		if explain() != first {
			t.Fatal("two plans of one Spec differ")
		}
	}
	for _, want := range []string{"pivot", "hidepid=ptraceable", "no_new_privs", "seccomp", "execve"} {
		if !strings.Contains(first, want) {
			t.Errorf("the plan does not mention %s", want)
		}
	}
}

func TestWords(t *testing.T) {
	if got := words([]string{"a", "b c", "", "\x1b[2J", `"`}); got != `a "b c" "" "\x1b[2J" "\""` {
		t.Errorf("got %s", got)
	}
}

// TestInside: a command by an absolute path of the host is mounted only when it
// does not mean a place of the sandbox.
func TestInside(t *testing.T) {
	b := &builder{plan: &Plan{Spec: policy.Default()}}
	b.plan.Spec.Mounts = []policy.Mount{{Target: "/data"}}
	for path, want := range map[string]bool{
		"/usr/bin/x": true, "/data/x": true, "/data": true, "/datas/x": false, "/home/u/x": false,
		"/tmp/x":         false, // empty at the start: it can only be the host's
		"/usr/../home/x": false, rootfs.CodeDir + "/x": true, "/opt/x": false,
	} {
		if got := b.inside(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
