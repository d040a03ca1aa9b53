package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// tool is what a model is told of one tool.
type tool struct {
	about  string
	open   bool
	fields map[string]any
}

func (c *client) tools() map[string]tool {
	c.t.Helper()
	list, err := c.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]tool{}
	for _, t := range list.Tools {
		all[t.Name] = tool{t.Description, *t.Annotations.OpenWorldHint, t.InputSchema.(map[string]any)["properties"].(map[string]any)}
	}
	return all
}

// TestDescription is what the operator has mounted and allowed, which
// cmd/sandglass-mcp tests in all its forms.
func TestDescription(t *testing.T) {
	dir := testkit.Dir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		flags []string
		want  string
		open  bool
	}{
		{[]string{"-v", dir + ":/data:ro", "-v", dir + ":/kept:rw"}, "It sees the installed programs (read-only), /data (read-only), " +
			"/kept (writable, and later calls see what is written), and nothing else of the host's. It has no network. Limits: ", false},
		{[]string{"--offer-host", "one.test.example.org"}, "It has no network but the allow_hosts of a call. Limits: ", true},
	} {
		c := stdio(t, testkit.AsUser(t), x.flags...)
		for name, tool := range c.tools() {
			if !strings.Contains(tool.about, x.want) || tool.open != x.open || strings.Contains(tool.about, dir) {
				t.Errorf("%q: %s: %s %v, want %s", x.flags, name, tool.about, tool.open, x.want)
			}
		}
		if len(x.flags) == 4 { // it is true
			c.good("run_command", sh("! touch /data/x && echo kept >/kept/x"))
			if got := c.good("run_command", sh("cat /data/x")); got.Stdout != "kept\n" {
				t.Errorf("%q", got.Stdout)
			}
		}
	}
}

// TestNull stands for a field that is left out, in the schema too, and for nothing else.
func TestNull(t *testing.T) {
	testkit.Requires(t, "python3")
	c := stdio(t, testkit.AsUser(t), "--offer-host", "one.test.example.org")
	for name, tool := range c.tools() {
		call := args{"language": "python", "code": "print(1)", "command": []string{"echo", "1"}}
		for field, schema := range tool.fields {
			types, many := schema.(map[string]any)["type"].([]any)
			needed := call[field] != nil
			if needed == many || many && !slices.Contains(types, any("null")) {
				t.Errorf("%s: %s may be %v", name, field, schema)
			}
			if !needed {
				call[field] = nil
			}
		}
		for _, other := range []string{"language", "code", "command"} {
			if tool.fields[other] == nil {
				delete(call, other)
			}
		}
		if got := c.good(name, call); got.Stdout != "1\n" || got.Artifacts != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	c.good("run_command", sh("./x", args{"files": []args{{"path": "x", "text": nil, "base64": "IyEvYmluL3NoCg==", "executable": true}, {"path": "y", "text": "", "executable": nil}}}))
	for _, x := range []struct {
		a    args
		want string
	}{
		{args{"command": nil}, "command is null, and has to be of the type array"},
		{args{"command": []any{"true", nil}}, "command[1] is null, and has to be of the type string"},
		{sh("true", args{"env": args{"A": "", "B": nil}}), `env."B" is null, and has to be of the type string`},
		{sh("true", args{"files": []any{nil}}), "files[0] is null, and has to be of the type object"},
		{sh("true", args{"files": []any{args{"path": nil, "text": ""}}}), "files[0].path is null, and has to be of the type string"},
		{sh("true", args{"allow_hosts": []any{nil}}), "allow_hosts[0] is null, and has to be of the type string"},
	} {
		if got, err := c.call(t.Context(), "run_command", x.a); err != x.want {
			t.Errorf("%v: %+v %q, want %q", x.a, got, err, x.want)
		}
	}
}

// TestWordsForModels: what is refused is told by the tools' own fields, for a model
// knows nothing of flags. 0 is no limit, and not one that is left out either.
func TestWordsForModels(t *testing.T) {
	c := stdio(t, testkit.AsUser(t), "--timeout", "5s", "--ceiling", "timeout=10s", "--disk-inodes", "64", "-w", "/work/in")
	var files []args
	for i := range 65 {
		files = append(files, args{"path": fmt.Sprint(i), "text": ""})
	}
	for _, x := range []struct {
		more args
		want string
	}{
		{args{"timeout_seconds": 0}, "timeout_seconds is 0, and has to be above 0: without it a call has 5"},
		{args{"memory_mb": 0}, "memory_mb is 0, and has to be above 0: without it a call has 256"},
		{args{"disk_mb": 0}, "disk_mb is 0, and has to be above 0: without it a call has 64"},
		{args{"cpus": 0}, "cpus is 0, and has to be above 0: without it a call has 1"},
		{args{"processes": 0}, "processes is 0, and has to be above 0: without it a call has 64"},
		{args{"timeout_seconds": json.RawMessage("-0.0")}, "timeout_seconds is -0, and has to be above 0: without it a call has 5"},
		{args{"memory_mb": -1}, "memory_mb is -1, and has to be above 0: without it a call has 256"},
		{args{"timeout_seconds": 1e-9}, "timeout_seconds: 1ns is too short: at least 1ms"},
		{args{"memory_mb": 1}, "memory_mb: 1m is too small: at least 6m"},
		{args{"cpus": 0.001}, `cpus: "0.001" is too small: at least 0.01 CPUs`},
		{args{"processes": 1.5}, `processes: "1.5" is not a count`},
		{args{"disk_mb": 0.0625, "files": []args{{"path": "x", "text": strings.Repeat("x", 1<<17)}}}, "disk_mb: the files are 131072 bytes and do not fit into 64k"},
		{args{"env": args{"A=B": "c"}}, `env: "A=B" is not the name of a variable`},
		{args{"env": args{"--memory": "\x00"}}, `env: variable "--memory" has a NUL byte`},
		{args{"files": []args{{"path": "in", "text": ""}}}, `file "in": the server's --workdir is there`},
		{args{"files": files}, "the server's --disk-inodes: 65 files do not fit into 64"},
	} {
		if got, err := c.call(t.Context(), "run_command", sh("true", x.more)); err != x.want {
			t.Errorf("%v: %+v %q, want %q", x.more, got, err, x.want)
		}
	}
	if _, err := c.call(t.Context(), "run_command", args{"command": []string{"--memory"}}); err != "command not found: --memory" {
		t.Errorf("%q", err)
	}
}

// TestHintsNameTheServer: what an ordinary user without a control group is told to
// paste is the command that was called, and no run.
func TestHintsNameTheServer(t *testing.T) {
	who := testkit.AsUser(t)
	hints := func(binary string, words ...string) (list []string) {
		text, _ := who.Command(binary, words...).CombinedOutput()
		for line := range strings.Lines(string(text)) {
			if h, ok := strings.CutPrefix(line, "hint: "); ok {
				list = append(list, strings.TrimSuffix(h, "\n"))
			}
		}
		return list
	}
	own := "mcp --sandglass " + testkit.Binary(t) + " -e A=b"
	got := hints(testkit.MCPServer(t), strings.Fields(own)[1:]...)
	want := hints(testkit.Binary(t), "run", "-e", "A=b", "--", "true")
	for i := range want {
		want[i] = strings.Replace(want[i], "sandglass run -e A=b -- true", "sandglass "+own, 1)
	}
	if !slices.Equal(got, want) {
		t.Errorf("hints %q, want %q", got, want)
	}
}
