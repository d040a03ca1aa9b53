package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func session(t *testing.T, line string) Session {
	t.Helper()
	s, err := testHost().parseSession(words(line), 3)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s
}

// option is NAME=VALUE, or NAME=[VALUE,VALUE].
func option(text string) Option {
	name, value, _ := strings.Cut(text, "=")
	if list, ok := strings.CutPrefix(value, "["); ok {
		return Option{Name: name, List: true, Values: strings.Split(strings.TrimSuffix(list, "]"), ",")}
	}
	return Option{Name: name, Values: []string{value}}
}

func request(options ...string) Request {
	r := Request{Program: Program{Command: []string{"true"}}}
	for _, o := range options {
		r.Options = append(r.Options, option(o))
	}
	return r
}

func TestSessionCommandLine(t *testing.T) {
	s := session(t, "")
	if s.Running != 3 || s.Queued != 256 || s.Help {
		t.Errorf("%+v", s)
	}
	s = session(t, "--max-running 7 -m 512m --max-queued=0")
	if s.Running != 7 || s.Queued != 0 || s.Defaults.base.Spec.Limits.Memory != 512<<20 {
		t.Errorf("%+v", s)
	}
	if !session(t, "--memory 1 --help").Help {
		t.Error("no help")
	}
	for line, want := range map[string]string{
		"--memory 1k":                         "--memory: 1k is too small",
		"python x.py":                         `session: a program comes with a request, not here: "python x.py"`,
		"-- true":                             `session: a program comes with a request, not here: "true"`,
		"-":                                   "session: a program comes with a request",
		"-c x":                                "-c is refused: it is the field code of a request",
		"--json":                              "--json is refused: every reply of a session is JSON",
		"-it":                                 "-i is refused: the field stdin",
		"-t":                                  "-t is refused: a session's streams are messages, not a terminal",
		"--out x":                             "--out is refused: it is the field artifacts",
		"--privileged":                        "--privileged is refused: ",
		"--max-running 0":                     "--max-running: ",
		"--max-running 1025":                  "--max-running: 1025 is not between 1 and 1024",
		"--max-running 2 --max-running 3":     "--max-running: given twice with different values",
		"--max-queued 100001":                 "--max-queued: 100001 is not between 0 and 100000",
		"--max-queued x":                      "--max-queued: ",
		"--network none --allow-host a.de":    "--network none and --allow-host contradict each other",
		"-v /nowhere:/x --allow-mount /x:/y ": "",
	} {
		_, err := testHost().parseSession(words(line), 3)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
			continue
		}
		shown(t, err) // a refusal
	}
}

// TestRequestOptions: single values replace the session's, lists are added.
func TestRequestOptions(t *testing.T) {
	d := session(t, "--memory 512m --timeout 3s -e A=1 -e B=2 -v /srv:/x --allow-host a.de --ulimit nofile=99 --device-read-bps /dev/a:1m").Defaults
	r := request("memory=64m", "cpus=0.5", "volume=[/opt/t:/y,/srv/u:/z:rw]", "allow-host=b.de:8443", "ulimit=nofile=77", "device-write-bps=/dev/a:2m", "explain-denials=true")
	r.Env = []string{"B=3", "C=4"}
	s, err := d.Spec(r)
	if err != nil {
		t.Fatal(err)
	}
	l := &s.Limits
	if l.Memory != 64<<20 || l.Timeout != 3*time.Second || l.MilliCPU != 500 || l.OpenFiles != 77 || !s.ExplainDenials {
		t.Errorf("%+v", s)
	}
	if want := []string{"A=1", "B=3", "C=4"}; !slices.Equal(s.Env, want) {
		t.Errorf("env %q, want %q", s.Env, want)
	}
	if want := []Mount{{"/srv", "/x", false}, {"/opt/t", "/y", false}, {"/srv/u", "/z", true}}; !slices.Equal(s.Mounts, want) {
		t.Errorf("mounts %v, want %v", s.Mounts, want)
	}
	if want := []string{"a.de", "b.de:8443"}; !slices.Equal(s.Hosts, want) {
		t.Errorf("hosts %v, want %v", s.Hosts, want)
	}
	if want := []IOLimit{{Device: "/dev/a", ReadBPS: 1 << 20, WriteBPS: 2 << 20}}; !slices.Equal(l.IO, want) {
		t.Errorf("io %v, want %v", l.IO, want)
	}
	// The next one starts from the session's again.
	s, err = d.Spec(request())
	if err != nil {
		t.Fatal(err)
	}
	want, err := testHost().Parse("run", words("--memory 512m --timeout 3s -e A=1 -e B=2 -v /srv:/x --allow-host a.de --ulimit nofile=99 --device-read-bps /dev/a:1m -- true"))
	if err != nil || !reflect.DeepEqual(s, want.Spec) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, s, want.Spec)
	}
}

func TestRequestIsWhatRunIs(t *testing.T) {
	d := session(t, "").Defaults
	s, err := d.Spec(Request{Program: Program{File: "script.py", Args: []string{"x"}}, Out: "out", Force: true, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, "-i --out out --force ./script.py x").Spec
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	s, err = d.Spec(Request{Program: Program{Command: []string{"true"}}, Files: []File{{Name: "a", Source: "task/main.py"}}, Keep: 4096})
	if err != nil || s.Files[0].Source != "/w/task/main.py" || !s.Keep || s.Limits.OutBytes != 4096 {
		t.Errorf("%v %+v", err, s)
	}
}

func TestRequestOptionsThatAreRefused(t *testing.T) {
	d := session(t, "--network none --allow-degraded memory").Defaults
	for o, want := range map[string]string{
		"memory=1k":                "--memory: 1k is too small",
		"memory=x":                 "--memory: ",
		"memory=true":              "--memory: ",
		"memory=[64m]":             "--memory takes one value, not a list",
		"memry=1":                  `unknown flag "--memry"`,
		"m=64m":                    `unknown flag "--m"`,
		"privileged=true":          "--privileged is refused: ",
		"tty=true":                 "--tty is refused: a session's streams are messages",
		"json=false":               "--json is refused: ",
		"result=/tmp/x":            "--result is refused: ",
		"result-fd=3":              "--result-fd is refused: ",
		"interactive=true":         "--interactive is refused: ",
		"quiet=true":               "--quiet is refused: ",
		"help=true":                "--help is refused: ",
		"code=x":                   "--code is refused: ",
		"lang=x":                   "--lang is refused: ",
		"out=/srv/x":               "--out is refused: ",
		"force=true":               "--force is refused: ",
		"env=A=1":                  "--env is refused: it is the field env",
		"allow-degraded=[cpu,io]":  "--allow-degraded is refused: the session's own command line",
		"allow-mount=/etc":         "--allow-mount is refused: the session's own command line",
		"cgroup-parent=/x":         "--cgroup-parent is refused: the session's own command line",
		"allow-host=a.de":          "--network none and --allow-host contradict each other",
		"volume=/etc:/x":           "",
		"max-running=3":            `unknown flag "--max-running"`,
		"net-rate=1m":              "--net-rate means nothing without --allow-host",
		"read-only=false":          "--read-only: cannot be turned off",
		"seccomp=unconfined":       "--seccomp: unconfined is refused",
		"volume=[/opt:/x,/srv:/x]": "",
	} {
		_, err := d.Spec(request(o))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", o, err, want)
			continue
		}
		shown(t, err)
	}
	// Once again with another value is still a change of mind.
	if _, err := d.Spec(request("timeout=3s", "timeout=4s")); err == nil || !strings.Contains(err.Error(), "given twice with different values") {
		t.Errorf("%v", err)
	}
}
