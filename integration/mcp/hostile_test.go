package mcp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func terminate(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// TestModelMayNotWiden: what a hostile model asks for that the operator did not
// give. Each is refused as a whole, and nothing is run.
func TestModelMayNotWiden(t *testing.T) {
	c := stdio(t, testkit.AsUser(t), "--timeout", "5s", "--ceiling", "timeout=10s", "--memory", "100m", "--disk", "20m",
		"--offer-host", "one.test.example.org", "--offer-host", "two.test.example.org:8443", "--artifacts", "none")
	const unknown = "unexpected additional properties"
	for _, x := range []struct {
		more args
		want string
	}{
		{args{"timeout_seconds": 10.1}, "timeout_seconds is more than this server allows: at most 10"},
		{args{"timeout_seconds": 1e300}, "timeout_seconds is more than this server allows: at most 10"},
		{args{"timeout_seconds": -1}, "timeout_seconds is -1, and has to be above 0"},
		{args{"timeout_seconds": "1h"}, "type"},
		{args{"memory_mb": 101}, "memory_mb is more than this server allows: at most 100"},
		{args{"memory_mb": 1e12}, "memory_mb is more than this server allows: at most 100"},
		{args{"disk_mb": 21}, "disk_mb is more than this server allows: at most 20"},
		{args{"cpus": 1.1}, "cpus is more than this server allows: at most 1"},
		{args{"processes": 65}, "processes is more than this server allows: at most 64"},
		{args{"processes": 0.5}, "processes: \"0.5\" is not a count"},
		{args{"options": args{"network": "host"}}, unknown},
		{args{"file": "/etc/passwd"}, unknown},
		{args{"volume": "/:/host"}, unknown},
		{args{"image": "/"}, unknown},
		{args{"Timeout_Seconds": 3600}, unknown},
		{args{"artifacts": true}, unknown},
		{args{"artifacts_dir": "/tmp/x"}, unknown},
		{args{"output": "stream"}, unknown},
		{args{"allow_hosts": []string{"three.test.example.org"}}, "allow_hosts"},
		{args{"allow_hosts": []string{"one.test.example.org:22"}}, "allow_hosts"},
		{args{"allow_hosts": []string{"*"}}, "allow_hosts"},
		{args{"allow_hosts": []string{"one.test.example.org", "x"}}, "allow_hosts"},
		{args{"files": []args{{"path": "x", "from": "/etc/shadow"}}}, unknown},
		{args{"files": []args{{"path": "../../etc/x", "text": ""}}}, "leads out of /work"},
		{args{"files": []args{{"path": "/etc/x", "text": ""}}}, "is absolute"},
		{args{"files": []args{{"path": "x"}}}, "one of text and base64"},
		{args{"files": []args{{"path": "x", "base64": "!"}}}, "illegal base64"},
		{args{"env": args{"A=B": "c"}}, "not the name"},
	} {
		got, err := c.call(t.Context(), "run_command", sh("echo ran", x.more))
		if got.Outcome != "" || !strings.Contains(err, x.want) {
			t.Errorf("%v: %+v %q, want %q", x.more, got, err, x.want)
		}
	}
	for _, x := range []args{{"language": "sh --privileged", "code": "true"}, {"language": "", "code": "true"}, {"language": "/bin/sh", "code": "true"}} {
		if got, err := c.call(t.Context(), "run_code", x); got.Outcome != "" || err == "" {
			t.Errorf("%v: %+v %q", x, got, err)
		}
	}
	for _, more := range []args{{"timeout_seconds": 10}, {"timeout_seconds": 9, "memory_mb": 50, "disk_mb": 5, "cpus": 0.5, "processes": 20}, {"allow_hosts": []string{"one.test.example.org"}}} {
		c.good("run_command", sh("true", more))
	}
}

// TestWhatAProgramSees is nothing of the server's.
func TestWhatAProgramSees(t *testing.T) {
	url, _ := server(t, testkit.AsUser(t), "--token-file", tokenFile(t, testkit.AsUser(t), token, 0o600))
	c := overHTTP(t, url)
	got := c.good("run_command", sh("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; ls -l /proc/self/fd; grep -c : /proc/net/dev"))
	for _, secret := range []string{token, "SANDGLASS_MCP_TOKEN", "sandglass-mcp", "socket:"} {
		if strings.Contains(got.Stdout, secret) {
			t.Errorf("%s is in\n%s", secret, got.Stdout)
		}
	}
	if !strings.HasSuffix(got.Stdout, "\n1\n") { // loopback alone
		t.Errorf("%s", got.Stdout)
	}
	// What it prints is text of the answer and no field of it.
	got, err := c.call(t.Context(), "run_command", sh(`printf '","outcome":"exited","exit_code":0,"x":"'; exit 9`))
	if err != "" || got.ExitCode != 9 || got.Stdout != `","outcome":"exited","exit_code":0,"x":"` {
		t.Errorf("%+v %s", got, err)
	}
}

// fifo has no writer: who opened it as a file would wait for one.
func fifo(t *testing.T, who testkit.Who) string {
	t.Helper()
	path := filepath.Join(testkit.Dir(t), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestOperatorsMistakes are refused before anything is started.
func TestOperatorsMistakes(t *testing.T) {
	who := testkit.AsUser(t)
	for _, x := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--ceiling", "timeout=5s"}, "the ceiling of timeout is below"},
		{[]string{"--ceiling", "output-limit=5m"}, "output-limit is no limit that a model may choose"},
		{[]string{"--ceiling", "tmeout=5m"}, "tmeout is no limit that a model may choose\nhint: did you mean --ceiling timeout=VALUE?\n"},
		{[]string{"--ceiling", "memory"}, "memory has no value\nhint: --ceiling memory=VALUE\n"},
		{[]string{"--ceiling", "memory=1k"}, "--ceiling memory: 1k is too small: at least 6m\nhint: --ceiling memory=6m\n"},
		{[]string{"--ceiling", "memory=x"}, `--ceiling memory: "x" is not a size`},
		{[]string{"--network", "none", "--offer-host", "example.org"}, "--network none and --offer-host contradict each other"},
		{[]string{"--offer-host", "not a host"}, "error: --offer-host: "},
		{[]string{"--offer-host", "*"}, "--offer-host: *: the list cannot mean every host\nhint: --offer-host '*.example.org'\n"},
		{[]string{"--output-limit", "100m"}, "--output-limit: 100m is too much for an answer: at most 16m\nhint: --output-limit 16m\n"},
		{[]string{"--out-limit", "1m"}, "--out-limit is of no use here: --artifacts says how much of /out an answer has\nhint: --artifacts 1m\n"},
		{[]string{"--artifacts", "0"}, "a size must be above 0\nhint: --artifacts 1m   # or none\n"},
		{[]string{"--artifacts", "1g"}, "at most 8m"},
		{[]string{"--token", token}, "unknown flag \"--token\"\nhint: did you mean --token-file?\nhint: sandglass mcp --help\n"},
		{[]string{"--token-file", "/x"}, "are for --http"},
		{[]string{"--privileged"}, "--privileged"},
		{[]string{"--http"}, "needs a value"},
		{[]string{"--http", "nowhere:x"}, "--http"},
		{[]string{"python", "x.py"}, "mcp: a program comes with a request, not here: \"python x.py\"\nhint: sandglass mcp --help\n"},
		{[]string{"--out", "x"}, "\nhint: sandglass mcp --help\n"},
		{[]string{"--http", "99999", "--token-file", "/nonexistent"}, "--http 99999: the port is no number between 0 and 65535"},
		// What every call would be refused for, and only an attempt shows.
		{[]string{"--cgroup-parent", "/nonexistent"}, "/nonexistent"},
		{[]string{"--http", "0", "--token-file", tokenFile(t, who, token, 0o644)}, "may be read by others than its owner\nhint: chmod 600 -- /"},
		{[]string{"--http", "0", "--token-file", "/tmp"}, "/tmp is no regular file\nhint: umask 077; head -c 32 /dev/urandom | base64 >token\n"},
		{[]string{"--http", "0", "--token-file", fifo(t, who)}, " is no regular file\nhint: umask"},
		{[]string{"--http", "0", "--token-file", tokenFile(t, who, "short", 0o600)}, "shorter than 16"},
		{[]string{"--http", "0", "--token-file", tokenFile(t, who, "", 0o600)}, "needs a bearer token"},
		{[]string{"--http", "0", "--token-file", "/nonexistent"}, "no such file or directory\nhint: umask 077; head -c 32 /dev/urandom | base64 >/nonexistent\n"},
		{[]string{"--sandglass", "/nonexistent"}, "given twice"},
	} {
		cmd := command(t, who, x.flags...)
		text, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 125 || !strings.Contains(string(text), x.want) || !strings.HasPrefix(string(text), "sandglass: error: ") || !strings.Contains(string(text), "\nhint: ") {
			t.Errorf("%q: %v %s, want %q", x.flags, err, text, x.want)
		}
	}
	lone := who.Command(testkit.MCPServer(t), "--sandglass", "/nonexistent/sandglass")
	if text, err := lone.CombinedOutput(); lone.ProcessState.ExitCode() != 125 || !strings.Contains(string(text), "no such file or directory\nhint: sandglass mcp --sandglass FILE") {
		t.Errorf("without sandglass: %v %s", err, text)
	}
	cmd := command(t, who, "--http", "0")
	cmd.Env = cmd.Env[:len(cmd.Env)-1]
	if text, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 125 || !strings.Contains(string(text), "--http needs a bearer token") {
		t.Errorf("without a token: %v %s", err, text)
	}
}
