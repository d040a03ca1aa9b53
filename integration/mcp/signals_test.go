package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

// places is a server with one place for runs, and a way to tell whether it is taken:
// a run that goes on after its caller is gone keeps it for an hour.
var places = []string{"--max-running", "1", "--max-queued", "0", "--timeout", "1h"}

// sleeper is the text of a call that ends by itself in a day.
const sleeper = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command","arguments":{"command":["sleep","86400"]}}}`

// TestHangUp: over HTTP the end of a request is the end of its run, with a protocol
// as old as clients speak, and nothing that a client says of itself changes that.
func TestHangUp(t *testing.T) {
	url, _ := server(t, testkit.AsUser(t), places...)
	other := overHTTP(t, url)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", withSessions, newest} {
		h, sleeper := with("Mcp-Protocol-Version", version, "Sandglass-Call", "1"), sleeper
		if version == newest {
			h, sleeper = single("tools/call", "run_command", sleeper)
			h.Set("Sandglass-Call", "1")
		} else {
			first, err := post(t.Context(), url, strings.Replace(initialize, "2025-06-18", version, 1), h)
			if err != nil || first.StatusCode != 200 {
				t.Fatalf("%s: %v %v", version, first, err)
			}
			first.Body.Close()
			h.Set("Mcp-Session-Id", first.Header.Get("Mcp-Session-Id"))
		}
		ctx, hangUp := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			text, err := busyText, error(nil)
			for err == nil && strings.Contains(text, busyText) { // the calls below may be first
				var answer *http.Response
				if answer, err = post(ctx, url, sleeper, h); err == nil {
					var body []byte
					body, err = io.ReadAll(answer.Body)
					answer.Body.Close()
					text = string(body)
				}
			}
			ended <- err
		}()
		place := func(taken bool) func() bool {
			return func() bool {
				_, err := other.call(t.Context(), "run_command", sh("true"))
				return taken == strings.Contains(err, busyText)
			}
		}
		testkit.Eventually(t, version+": the place is taken", place(true))
		hangUp()
		if err := <-ended; err == nil {
			t.Errorf("%s: the call has an answer", version)
		}
		testkit.Eventually(t, version+": the place is free", place(false))
	}
}

// post sends one message.
func post(ctx context.Context, url, body string, h http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = h.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return http.DefaultClient.Do(req)
}

// raw is a server on two pipes, with a call that sleeps.
func raw(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Reader, closeOut func() error, kids []int) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out = bufio.NewReader(pipe)
	fmt.Fprintf(in, "%s\n", initialize)
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	fmt.Fprintf(in, "%s\n%s\n", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, sleeper)
	kids = testkit.Children(t, cmd.Process.Pid)
	testkit.Eventually(t, "the run is there", func() bool { return len(testkit.Children(t, kids[0])) > 0 })
	return in, out, pipe.Close, append(kids, testkit.Children(t, kids[0])...)
}

// TestEndsOverStdio: a signal and a client that reads no more end the server, its
// session and the run that is under way, which has an answer where somebody reads it.
func TestEndsOverStdio(t *testing.T) {
	for name, want := range map[string]int{"SIGTERM": 143, "SIGHUP": 129, "reader gone": 141} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, testkit.AsUser(t), places...)
			_, out, closeOut, kids := raw(t, cmd)
			switch name {
			case "reader gone":
				closeOut()
			case "SIGTERM":
				terminate(t, cmd)
			default:
				cmd.Process.Signal(syscall.SIGHUP)
			}
			if name != "reader gone" {
				if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":2`) || !strings.Contains(line, "the run was canceled") {
					t.Errorf("%q, %v", line, err)
				}
			}
			if cmd.Wait(); cmd.ProcessState.ExitCode() != want {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, want)
			}
			for _, pid := range kids {
				if !testkit.Dead(pid) {
					t.Errorf("process %d is still there", pid)
				}
			}
		})
	}
}

// once is a program in place of sandglass, which is that the first time it is started.
// The second one says no hello, and tells in dir that it is there, and that it has
// ended because its stdin has and not because it was killed.
const once = `#!/bin/sh
cd %s || exit 1
mkdir first 2>/dev/null && exec %s "$@"
trap "" TERM
echo $$ >second.new; mv second.new second
cat >/dev/null
echo >ended`

// TestEndsWhileItsSessionStarts: a server whose session was killed, and whose next one
// does not come up, ends with a signal, ends that one first, and answers who waits.
func TestEndsWhileItsSessionStarts(t *testing.T) {
	who, dir := testkit.AsUser(t), testkit.Dir(t)
	path := filepath.Join(dir, "sandglass")
	if err := os.WriteFile(path, fmt.Appendf(nil, once, dir, testkit.Binary(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, who, places...)
	cmd.Args[slices.Index(cmd.Args, "--sandglass")+1] = path
	in, out, _, kids := raw(t, cmd)
	kill(t, kids[0])
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":2`) {
		t.Fatalf("%q, %v", line, err)
	}
	fmt.Fprintf(in, "%s\n", strings.Replace(sleeper, `"id":2`, `"id":3`, 1))
	second := 0
	testkit.Eventually(t, "the next session is started", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "second"))
		_, err := fmt.Sscan(string(text), &second)
		return err == nil
	})
	terminate(t, cmd)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":3`) || !strings.Contains(line, "the server ends: nothing was run") {
		t.Errorf("%q, %v", line, err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
		t.Errorf("%v", cmd.ProcessState)
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil || !testkit.Dead(second) {
		t.Errorf("its session was not ended, but killed, or is there still: %v", err)
	}
}

// TestIgnoredStaysIgnored: with nohup(1) the server outlives the end of its terminal.
func TestIgnoredStaysIgnored(t *testing.T) {
	who := testkit.AsUser(t)
	plain := command(t, who, places...)
	cmd := who.Command("/bin/sh", append([]string{"-c", `trap "" HUP; exec "$@"`, "sh"}, plain.Args...)...)
	cmd.Dir, cmd.Env = "/", plain.Env
	in, out, _, kids := raw(t, cmd)
	for _, pid := range []int{cmd.Process.Pid, kids[0]} { // the server, and its session
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(in, "%s\n", `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":3`) {
		t.Errorf("%q, %v", line, err)
	}
	terminate(t, cmd)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
		t.Errorf("%v", cmd.ProcessState)
	}
}
