package mcp

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// TestTools: what a model can do, over stdio.
func TestTools(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		useTools(t, stdio(t, who, "--timeout", "20s", "-e", "OPERATOR=yes"))
	})
}

// TestToolsOverHTTP: the same over HTTP, for several clients.
func TestToolsOverHTTP(t *testing.T) {
	testkit.Requires(t, "python3")
	url, _ := server(t, testkit.AsUser(t), "--timeout", "20s", "-e", "OPERATOR=yes")
	useTools(t, overHTTP(t, url))
	useTools(t, overHTTPAs(t, url, withSessions))
	overHTTP(t, url).good("run_command", sh("true"))
}

func useTools(t *testing.T, c *client) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		fields := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		if fields["artifacts"] == nil || fields["timeout_seconds"] == nil || fields["allow_hosts"] != nil {
			t.Errorf("%s has the fields %v", tool.Name, fields)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"run_code", "run_command"}) {
		t.Errorf("tools: %q", names)
	}
	got := c.good("run_code", args{"language": "python", "code": "import sys, os\nprint(sys.argv[1:], sys.stdin.read(), os.environ['A'], os.environ['OPERATOR'], open('in').read())",
		"args": []string{"a", "b c"}, "stdin": "in", "env": args{"A": "b"}, "files": []args{{"path": "in", "text": "file"}}})
	if got.Stdout != "['a', 'b c'] in b yes file\n" || got.Stderr != "" {
		t.Errorf("%+v", got)
	}
	got = c.good("run_command", sh("echo x >/tmp/left; base64 d/b; ./x >&2; printf '\\377' >/out/bytes; echo text >/out/text; ln -s /etc /out/link",
		args{"artifacts": true, "files": []args{{"path": "d/b", "base64": "AP8="}, {"path": "x", "text": "#!/bin/sh\necho run", "executable": true}}}))
	if got.Stdout != "AP8=\n" || got.Stderr != "run\n" || len(got.Artifacts) != 3 || got.Artifacts[0].Base64 != "/w==" || got.Artifacts[1].Skipped == "" || got.Artifacts[2].Text != "text\n" {
		t.Errorf("%+v", got)
	}
	// Nothing of a call is there in the next.
	if got = c.good("run_command", sh("ls -A /tmp /work /out")); got.Stdout != "/out:\n\n/tmp:\n\n/work:\n" {
		t.Errorf("%q", got.Stdout)
	}
	if got, err := c.call(t.Context(), "run_command", sh("echo begun; sleep 1000", args{"timeout_seconds": 3})); err != "" || got.Outcome != "timeout" || got.ExitCode != 124 || got.Stdout != "begun\n" {
		t.Errorf("%+v %s", got, err)
	}
	if got, err := c.call(t.Context(), "run_command", sh("yes | head -c 100000; exit 3")); err != "" || got.ExitCode != 3 || len(got.Stdout) != 64<<10 || !got.StdoutTruncated {
		t.Errorf("%d bytes, %+v %s", len(got.Stdout), got.Outcome, err)
	}
}

const busyText = "1 run and 0 wait"

// TestCancelledCall: the client's cancel is the sandbox's end, or the one place
// would be taken for an hour.
func TestCancelledCall(t *testing.T) {
	c := stdio(t, testkit.AsUser(t), "--max-running", "1", "--max-queued", "0", "--timeout", "1h")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string)
	go func() {
		busy := busyText
		for strings.Contains(busy, busyText) { // the calls below may be first
			_, busy = c.call(ctx, "run_command", sh("sleep 100000"))
		}
		ended <- busy
	}()
	testkit.Eventually(t, "the one place is taken", func() bool {
		_, err := c.call(t.Context(), "run_command", sh("true"))
		return strings.Contains(err, busyText)
	})
	cancel()
	if err := <-ended; !strings.Contains(err, "context canceled") {
		t.Errorf("%q", err)
	}
	testkit.Eventually(t, "the place is free", func() bool {
		_, err := c.call(t.Context(), "run_command", sh("true"))
		return err == ""
	})
}

// TestSessionIsStartedAgain after somebody has killed it.
func TestSessionIsStartedAgain(t *testing.T) {
	url, cmd := server(t, testkit.AsUser(t))
	c := overHTTP(t, url)
	c.good("run_command", sh("true"))
	kids := testkit.Children(t, cmd.Process.Pid)
	if len(kids) != 1 {
		t.Fatalf("children %d", kids)
	}
	kill(t, kids[0])
	// A call that meets its end may have begun a run, and is not made twice.
	testkit.Eventually(t, "another session", func() bool {
		got, err := c.call(t.Context(), "run_command", sh("true"))
		if err != "" && !strings.Contains(err, "session ended: signal: killed") {
			t.Fatalf("%+v %s", got, err)
		}
		return got.Outcome == "exited" && got.ExitCode == 0
	})
}

// TestEnds: a signal is the end of the server, of its session and of every run.
func TestEnds(t *testing.T) {
	url, cmd := server(t, testkit.AsUser(t), "--timeout", "1h")
	c := overHTTP(t, url)
	c.good("run_command", sh("true"))
	kids := testkit.Children(t, cmd.Process.Pid)
	go c.call(context.WithoutCancel(t.Context()), "run_command", sh("sleep 100000"))
	testkit.Eventually(t, "the run is there", func() bool { return len(testkit.Children(t, kids[0])) > 0 })
	boxes := testkit.Children(t, kids[0])
	terminate(t, cmd)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
		t.Errorf("%v", cmd.ProcessState)
	}
	for _, pid := range append(kids, boxes...) {
		if !testkit.Dead(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}
