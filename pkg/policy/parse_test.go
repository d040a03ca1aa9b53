package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every flag that is accepted, in each of its spellings, changes what it should
// and nothing else.
func TestFlags(t *testing.T) {
	device := func(l IOLimit) func(*Parsed) {
		l.Device = "/dev/vda"
		return func(p *Parsed) { p.Spec.Limits.IO = []IOLimit{l} }
	}
	mount := func(m ...Mount) func(*Parsed) { return func(p *Parsed) { p.Spec.Mounts = m } }
	same := func(*Parsed) {}
	for _, c := range []struct {
		lines string // alternatives, separated by " | "
		want  func(*Parsed)
	}{
		{"--timeout 3 | --timeout=3s | --timeout 3000ms", func(p *Parsed) { p.Spec.Limits.Timeout = 3 * time.Second }},
		{"--cpu-time 1m30s", func(p *Parsed) { p.Spec.Limits.CPUTime = 90 * time.Second }},
		{"--memory 64m | --memory=64M | -m 64m | -m64m | -m=64MiB | -m 64m -m 64m", func(p *Parsed) { p.Spec.Limits.Memory = 64 << 20 }},
		{"--memory-swap 256m | --memory 256m --memory-swap 256m | --memory-swap 256m -m 256m", same},
		{"--cpus 0.5", func(p *Parsed) { p.Spec.Limits.MilliCPU = 500 }},
		{"--pids-limit 7", func(p *Parsed) { p.Spec.Limits.Pids = 7 }},
		{"--disk 1g", func(p *Parsed) { p.Spec.Limits.Disk = 1 << 30 }},
		{"--disk-inodes 2k | --disk-inodes 2048", func(p *Parsed) { p.Spec.Limits.DiskInodes = 2048 }},
		{"--output-limit 10k", func(p *Parsed) { p.Spec.Limits.Output = 10 << 10 }},
		{"--on-output-limit kill", func(p *Parsed) { p.Spec.OutputLimit = OutputKill }},
		{"--on-output-limit truncate", same},
		{"--open-files 20 | --ulimit nofile=20 | --ulimit nofile=20:20 | --open-files 20 --ulimit nofile=20",
			func(p *Parsed) { p.Spec.Limits.OpenFiles = 20 }},
		{"--ulimit fsize=4096", func(p *Parsed) { p.Spec.Limits.FileSize = 4096 }},
		{"--ulimit stack=1m", func(p *Parsed) { p.Spec.Limits.Stack = 1 << 20 }},
		{"--ulimit core=0 | --ulimit=core=0:0", same},
		{"--device-read-bps /dev/vda:1m | --device-read-bps /dev/vda:1m --device-read-bps /dev/vda:1024k", device(IOLimit{ReadBPS: 1 << 20})},
		{"--device-write-bps /dev/vda:1m", device(IOLimit{WriteBPS: 1 << 20})},
		{"--device-read-iops /dev/vda:100", device(IOLimit{ReadIOPS: 100})},
		{"--device-write-iops=/dev/vda:100 --device-read-bps /dev/vda:4k", device(IOLimit{WriteIOP: 100, ReadBPS: 4096})},

		{"--image host", same},
		{"--entrypoint= | --entrypoint ''", same},
		{"--image ./root | --image=/w/root/", func(p *Parsed) { p.Spec.Image = "/w/root" }},
		{"--env A=1 | -e A=1 | -eA=1 | -e A=0 -e A=1 | --env=A=1", func(p *Parsed) { p.Spec.Env = []string{"A=1"} }},
		{"-e TOKEN -e EMPTY -e X=", func(p *Parsed) { p.Spec.Env = []string{"TOKEN=t0p", "EMPTY=", "X="} }},
		{"--env-file env", func(p *Parsed) { p.Spec.Env = []string{"A=2", "B=x=y", "C="} }},
		{"--env-file own.env", func(p *Parsed) { p.Spec.Env = []string{"A=2", "B=x=y", "C="} }},
		{"--env-file other.env", func(p *Parsed) { p.Spec.Env = []string{"OTHER=1"} }},
		{"-e B=3 --env-file env", func(p *Parsed) { p.Spec.Env = []string{"A=2", "B=3", "C="} }},
		{"--workdir /a | -w /a | -w/a", func(p *Parsed) { p.Spec.Workdir = "/a" }},
		{"--user 7 | -u 7 | -u7:7", func(p *Parsed) { p.Spec.User = User{7, 7} }},
		{"--user 0:5 | --user root:5", func(p *Parsed) { p.Spec.User = User{0, 5} }},
		{"--user nobody | --user sandbox | --user nobody:nogroup | --user 65534", same},
		{"--interactive | -i | --interactive=true | -i=1 | -i=true --quiet=false | -i -i", func(p *Parsed) { p.Spec.Stdin = true }},
		{"--interactive=false", same},
		{"--venv v", func(p *Parsed) { p.Spec.Venv = "/w/v" }},

		{"-v /srv/d:/d | -v /srv/d:/d:ro | -v/srv/d:/d | --volume=/srv/d:/d:ro,private | --mount type=bind,src=/srv/d,dst=/d" +
			" | --mount type=bind,source=/srv/d,target=/d,readonly | --mount=type=bind,source=/srv/d,destination=/d,ro=true",
			mount(Mount{"/srv/d", "/d", false})},
		{"-v ./d:/d:rw | -v /w/d/:/d:rw | --mount type=bind,src=d,dst=/d,readonly=false,bind-propagation=rprivate",
			mount(Mount{"/w/d", "/d", true})},
		{"-v .:/work -v ../srv:/s", mount(Mount{"/w", "/work", false}, Mount{"/srv", "/s", false})},
		{"--out o", func(p *Parsed) { p.Spec.Out = "/w/o" }},
		{"--out /w/o --force", func(p *Parsed) { p.Spec.Out, p.Spec.Force = "/w/o", true }},
		{"--out o --out-files 2k --out-limit 1g", func(p *Parsed) {
			p.Spec.Out, p.Spec.Limits.OutFiles, p.Spec.Limits.OutBytes = "/w/o", 2048, 1<<30
		}},
		{"--allow-mount x --allow-mount /etc/", func(p *Parsed) { p.Spec.AllowMounts = []string{"/w/x", "/etc"} }},

		{"--network none | --network=none | --net none", same},
		{"--seccomp strict | --security-opt seccomp=strict | --security-opt seccomp:strict | --seccomp strict --security-opt seccomp=strict",
			func(p *Parsed) { p.Spec.Seccomp = "strict" }},
		{"--seccomp f.bpf | --seccomp ./f.bpf | --security-opt seccomp=/w/f.bpf", func(p *Parsed) { p.Spec.Seccomp = "/w/f.bpf" }},
		{"--security-opt seccomp=builtin --seccomp default", same},
		{"--security-opt no-new-privileges | --security-opt no-new-privileges:true | --security-opt=no-new-privileges=true", same},
		{"--pty", func(p *Parsed) { p.Spec.Pty = true }},
		{"--allow-host example.org --allow-host *.example.net:8443", func(p *Parsed) { p.Spec.Hosts = []string{"example.org", "*.example.net:8443"} }},
		{"--allow-host 192.0.2.0/24:80 --tls-sni-check all --net-connections 8 --net-connections-total 9 --net-upload 1m --net-download 2m --net-rate 64k --net-idle 1m",
			func(p *Parsed) {
				p.Spec.Hosts, p.Spec.ServerNames = []string{"192.0.2.0/24:80"}, SNIAll
				p.Spec.Limits.Net = NetLimits{Open: 8, Total: 9, Upload: 1 << 20, Download: 2 << 20, Rate: 64 << 10, Idle: time.Minute}
			}},
		{"--tls-sni-check 443 --net-upload 64m", same},
		{"--host-id own", func(p *Parsed) { p.Spec.HostID = HostIDOwn }},
		{"--host-id caller", func(p *Parsed) { p.Spec.HostID = HostIDCaller }},
		{"--proc none", func(p *Parsed) { p.Spec.Proc = "none" }},
		{"--cgroup-parent /a/b", func(p *Parsed) { p.Spec.CgroupParent = "/a/b" }},
		{"--allow-degraded memory,cpu | --allow-degraded memory --allow-degraded cpu,memory",
			func(p *Parsed) { p.Spec.AllowDegraded = []string{"memory", "cpu"} }},

		{"--json", func(p *Parsed) { p.JSON = true }},
		{"--result r.json", func(p *Parsed) { p.ResultFile = "/w/r.json" }},
		{"--result-fd 3", func(p *Parsed) { p.ResultFD = 3 }},
		{"--explain-denials | --explain-denials=true", func(p *Parsed) { p.Spec.ExplainDenials = true }},
		{"--quiet | -q", func(p *Parsed) { p.Quiet = true }},

		{"--rm | --rm=true | --read-only | --init --init | --cap-drop ALL | --cap-drop=all --cap-drop CAP_NET_RAW --cap-drop chown", same},
		{"--tmpfs /tmp | --tmpfs /tmp:rw,nosuid | --hostname sandglass | --pid private | --ipc none | --ipc private", same},
		{"--uts private | --userns private | --cgroupns private | --pull never | --restart no | --memory-swappiness 0", same},
		{"--tty | -t | -t=true | -t -t", func(p *Parsed) { p.Spec.TTY = true }},
		{"-it | -ti | -i -t", func(p *Parsed) { p.Spec.TTY, p.Spec.Stdin = true, true }},
		{"--privileged=false | -t=false | --detach=0", same},
	} {
		for line := range strings.SplitSeq(c.lines, " | ") {
			want := Parsed{Spec: okSpec(), ResultFD: -1}
			c.want(&want)
			if got := parse(t, line+" -- true"); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", line, got, want)
			}
		}
	}
}

// No accepted flag is without a row in TestFlags, no refused one without a line
// in the golden file.
func TestEveryFlagHasATest(t *testing.T) {
	source, err := os.ReadFile("parse_test.go")
	if err != nil {
		t.Fatal(err)
	}
	texts, err := os.ReadFile("testdata/refusals.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range RunFlags() {
		if f.Refused == "" && !strings.Contains(string(source), "--"+f.Name) {
			t.Errorf("--%s is in no test", f.Name)
		}
		if f.Refused != "" && !strings.Contains(string(texts), "--"+f.Name+" is refused: ") {
			t.Errorf("--%s has no golden text", f.Name)
		}
	}
}

func TestFlagTable(t *testing.T) {
	names := map[string]bool{}
	for _, f := range RunFlags() {
		for _, n := range []string{"--" + f.Name, "-" + f.Short} {
			if n != "-" && names[n] {
				t.Errorf("%s is twice in the table", n)
			}
			names[n] = true
		}
		switch {
		case f.Refused == "" && f.Set == nil, f.Refused != "" && f.Set != nil:
			t.Errorf("--%s: neither or both of Set and Refused", f.Name)
		case f.Bool == (f.Arg != ""):
			t.Errorf("--%s: a value without a name, or the reverse", f.Name)
		case f.Help != "" && f.Group == "":
			t.Errorf("--%s: help without a group is never shown", f.Name)
		}
	}
}

// The defaults that the help text shows are Default's.
func TestDefaultsAreDefault(t *testing.T) {
	var line []string
	for _, f := range RunFlags() {
		if f.Default != "" {
			line = append(line, "--"+f.Name, f.Default)
		}
	}
	p := parse(t, strings.Join(line, " ")+" -- true")
	if want := okSpec(); !reflect.DeepEqual(p.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", p.Spec, want)
	}
	if len(line) != 2*24 {
		t.Errorf("%d defaults are shown, want 24: %v", len(line)/2, line)
	}
}

func TestPositionals(t *testing.T) {
	cmd := func(w ...string) Program { return Program{Command: w} }
	for _, c := range []struct {
		line  string
		image string
		want  Program
	}{
		{"host python x.py -v", "host", cmd("python", "x.py", "-v")},
		{"host script.py", "host", cmd("script.py")},
		{"host -- ls", "host", cmd("ls")},
		{"./root sh -c ls", "/w/root", cmd("sh", "-c", "ls")},
		{"/w/root/ sh", "/w/root", cmd("sh")},
		{"root sh", "host", cmd("root", "sh")}, // no slash, so not a directory
		{"python --version", "host", cmd("python", "--version")},
		{"script.py --rm -x", "host", Program{File: "/w/script.py", Args: []string{"--rm", "-x"}}},
		{"./tool a", "host", Program{File: "/w/tool", Args: []string{"a"}}},
		{"/srv/tool", "host", Program{File: "/srv/tool"}},
		{"/srv/x.sh", "host", Program{File: "/srv/x.sh"}},
		{"'a b.py'", "host", Program{File: "/w/a b.py"}},
		{"tool a", "host", cmd("tool", "a")}, // no slash and no extension: looked up inside
		{"/usr/bin/python3 -V", "host", cmd("/usr/bin/python3", "-V")},
		{"/usr/../usr/bin/python3", "host", cmd("/usr/../usr/bin/python3")},
		{"/task/absent.py", "host", cmd("/task/absent.py")}, // may be inside
		{"./absent", "host", cmd("./absent")},
		{"--lang python ./tool a", "host", Program{File: "/w/tool", Lang: "python", Args: []string{"a"}}},
		{"-- script.py", "host", cmd("script.py")},
		{"-- host ls", "host", cmd("host", "ls")},
		{"-- --rm", "host", cmd("--rm")},
		{"-- - x", "host", cmd("-", "x")},
		{"-c 'print(1)' --lang python", "host", Program{Code: []byte("print(1)"), Lang: "python"}},
		{"--lang python -cx host -q", "host", Program{Code: []byte("x"), Lang: "python", Args: []string{"host", "-q"}}},
		{"--code=x --lang python -- -q", "host", Program{Code: []byte("x"), Lang: "python", Args: []string{"-q"}}},
		{"- --lang python", "host", Program{Code: []byte("print(2)\n"), Lang: "python", Args: []string{}}},
		{"--lang python - a --rm", "host", Program{Code: []byte("print(2)\n"), Lang: "python", Args: []string{"a", "--rm"}}},
		{"- --lang python -- --rm", "host", Program{Code: []byte("print(2)\n"), Lang: "python", Args: []string{"--rm"}}},
		{"- --lang python -", "host", Program{Code: []byte("print(2)\n"), Lang: "python", Args: []string{"-"}}},
		{"--image ./root host x", "/w/root", cmd("host", "x")},
		{"--image /w/root script.py", "/w/root", Program{File: "/w/script.py"}},
		{"--image /w/root /usr/bin/python3", "/w/root", Program{File: "/usr/bin/python3"}},
		{"--image host ./root", "host", cmd("./root")},
	} {
		p := parse(t, c.line)
		got := p.Spec.Program
		if p.Spec.Image != c.image || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s: got %s %q, want %s %q", c.line, p.Spec.Image, got, c.image, c.want)
		}
	}
}

func TestDockerLine(t *testing.T) {
	line := `--rm --network none --read-only --memory 256m --cpus 0.5 --pids-limit 64 --user 65534 --cap-drop ALL ` +
		`--security-opt no-new-privileges -v /w/task:/task:ro host timeout 10 python /task/main.py`
	want := okSpec()
	want.Limits.MilliCPU = 500
	want.Mounts = []Mount{{Source: "/w/task", Target: "/task"}}
	want.Program.Command = []string{"timeout", "10", "python", "/task/main.py"}
	if got := parse(t, line); !reflect.DeepEqual(got, Parsed{Spec: want, ResultFD: -1}) {
		t.Errorf("got  %+v\nwant %+v", got.Spec, want)
	}
}

func TestHelpNeedsNothingElse(t *testing.T) {
	for _, line := range []string{"--help", "-h", "--memory 64m -h", "-qh", "--help --no-such", "--help=true x", "--memory-swap 1g -h"} {
		if got := parse(t, line); !reflect.DeepEqual(got, Parsed{Help: true, ResultFD: -1}) {
			t.Errorf("%s: got %+v", line, got)
		}
	}
	if p := parse(t, "--help=false true"); p.Help || p.Spec.Program.Command[0] != "true" {
		t.Errorf("--help=false: got %+v", p)
	}
	if p := parse(t, "host ls --help"); p.Help {
		t.Error("the program's own --help was taken")
	}
}

func TestUsage(t *testing.T) {
	var b strings.Builder
	if err := Usage(&b); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if len(line) > usageWidth {
			t.Errorf("line %d is %d wide: %s", i+1, len(line), line)
		}
	}
	golden(t, "usage.golden", b.String())
}

type failing struct{}

func (failing) Write([]byte) (int, error)  { return 0, io.ErrClosedPipe }
func (failing) Read([]byte) (int, error)   { return 0, io.ErrUnexpectedEOF }
func (failing) Stat() (fs.FileInfo, error) { return nil, io.ErrUnexpectedEOF }
func (failing) Close() error               { return nil }

func TestUsagePassesTheWriteErrorOn(t *testing.T) {
	if err := Usage(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestStdinCode(t *testing.T) {
	run := func(r io.Reader) (Parsed, error) {
		h := testHost()
		h.Stdin = r
		return h.Parse("run", words("- --lang python"))
	}
	if p, err := run(strings.NewReader(strings.Repeat("#", MaxCode))); err != nil || len(p.Spec.Program.Code) != MaxCode {
		t.Errorf("code of the largest size: %v", err)
	}
	for _, c := range []struct {
		in   io.Reader
		want string
	}{
		{strings.NewReader(""), "the code on stdin is empty"},
		{strings.NewReader(strings.Repeat("#", MaxCode+1)), "the code on stdin is more than 16m"},
		{failing{}, "cannot read the code from stdin: unexpected EOF"},
	} {
		p, err := run(c.in)
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if !reflect.DeepEqual(p, Parsed{ResultFD: -1}) {
			t.Errorf("%s: a refused line gave %+v", c.want, p)
		}
	}
}

func TestHostFailures(t *testing.T) {
	h := testHost()
	h.Getwd = func() (string, error) { return "", fs.ErrNotExist }
	h.Open = func(string) (fs.File, error) {
		return nil, &fs.PathError{Op: "open", Path: "env", Err: fs.ErrPermission}
	}
	for _, c := range []struct{ line, want string }{
		{"--out o -- true", `"o" is relative and the working directory is gone: file does not exist`},
		{"--env-file /w/env -- true", `--env-file: cannot read "/w/env": permission denied`},
	} {
		if _, err := h.Parse("run", words(c.line)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
	}
	if _, err := h.Parse("run", words("--out /o/p -- true")); err != nil {
		t.Errorf("an absolute path asked for the working directory: %v", err)
	}
	h.Open = func(string) (fs.File, error) { return failing{}, nil }
	if _, err := h.Parse("run", words("--env-file /w/env -- true")); err == nil || err.Error() != `--env-file: cannot read "/w/env": unexpected EOF` {
		t.Errorf("got %v", err)
	}
	h.LookupEnv = func(string) (string, bool) { return "", false }
	if p, err := h.Parse("run", words("-- true")); err != nil || p.Spec.Home != "" {
		t.Errorf("no HOME: got %q, %v", p.Spec.Home, err)
	}
}

// HOME may be a link: what is below it is then judged where it really is.
func TestHomeIsResolved(t *testing.T) {
	h := testHost()
	h.LookupEnv = func(string) (string, bool) { return "/link", true }
	p, err := h.Parse("run", words("-v /srv/x:/x -- true"))
	if err != nil || p.Spec.Home != "/data/ann" {
		t.Errorf("got %q, %v", p.Spec.Home, err)
	}
	if p.Spec.CheckSource("/data/ann/.ssh", false) == nil {
		t.Error("the keys of a home behind a link are not seen")
	}
	if p, err := h.Parse("run", words("-- true")); err != nil || p.Spec.Home != "/link" {
		t.Errorf("looked up without need: %q, %v", p.Spec.Home, err)
	}
}

// The real host is only touched here, and only to look.
func TestParseRunOnTheRealHost(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("x.py", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("env", []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func([]string) (Parsed, error){ParseRun, ParsePlan} {
		p, err := f([]string{"--env-file", "env", "x.py"})
		if err != nil || !strings.HasSuffix(p.Spec.Program.File, "/x.py") || p.Spec.Program.File[0] != '/' || p.Spec.Env[0] != "A=1" {
			t.Errorf("got %+v, %v", p.Spec.Program, err)
		}
	}
	_, err := ParsePlan([]string{"--memory"})
	if got := shown(t, err); got != "error 125: --memory needs a value: SIZE\nhint: sandglass plan --help\n" {
		t.Errorf("got %s", got)
	}
}
