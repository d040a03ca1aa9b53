// Package mcp tests sandglass-mcp with the client of the protocol's own SDK, over
// both transports, and as a hostile model and a hostile web page would use it.
package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// The versions of the protocol, of which the newest has no sessions over HTTP.
const (
	newest       = "2026-07-28"
	withSessions = "2025-11-25"
)

const token = "0123456789abcdef-the-token"

// answer is what a tool returns.
type answer struct {
	Outcome         string
	ExitCode        int `json:"exit_code"`
	Stdout, Stderr  string
	StdoutTruncated bool `json:"stdout_truncated"`
	Artifacts       []struct {
		Path, Text, Base64, Skipped string
	}
}

// args are the arguments of a call.
type args map[string]any

// command is sandglass-mcp as who starts it.
func command(t *testing.T, who testkit.Who, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := who.Command(testkit.MCPServer(t), append(append(who.Flags(), "--sandglass", testkit.Binary(t)), flags...)...)
	cmd.Dir = "/"
	cmd.Env = append(cmd.Env, "SANDGLASS_MCP_TOKEN="+token)
	return cmd
}

// client talks to a server.
type client struct {
	t *testing.T
	*sdk.ClientSession
}

// connect begins with the newest version of the protocol, or the one that is said.
func connect(t *testing.T, transport sdk.Transport, version string) *client {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.InitializeResult().ProtocolVersion; got != cmp.Or(version, newest) {
		t.Fatalf("version %s, want %q", got, version)
	}
	t.Cleanup(func() { s.Close() })
	return &client{t, s}
}

// stdio starts a server on two pipes.
func stdio(t *testing.T, who testkit.Who, flags ...string) *client {
	t.Helper()
	cmd := command(t, who, flags...)
	cmd.Stderr = os.Stderr
	return connect(t, &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, "")
}

// server starts one that listens, and returns its URL.
func server(t *testing.T, who testkit.Who, flags ...string) (url string, cmd *exec.Cmd) {
	t.Helper()
	cmd = command(t, who, append([]string{"--http", "0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	const before = "sandglass: mcp at "
	if !strings.HasPrefix(line, before+"http://127.0.0.1:") {
		t.Fatalf("it listens elsewhere: %q", line)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, before)), cmd
}

// bearer adds the token to each request.
type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(t *testing.T, url string) *client {
	t.Helper()
	return overHTTPAs(t, url, "")
}

func overHTTPAs(t *testing.T, url, version string) *client {
	t.Helper()
	return connect(t, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{}}}, version)
}

// call is a call that the server answers; an error of the tool's is in the text.
func (c *client) call(ctx context.Context, tool string, a args) (answer, string) {
	r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		return answer{}, err.Error()
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		return answer{}, text
	}
	var got answer
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return answer{}, err.Error() + ": " + text
	}
	return got, ""
}

// good is a call that must end by itself with 0.
func (c *client) good(tool string, a args) answer {
	c.t.Helper()
	got, err := c.call(c.t.Context(), tool, a)
	if err != "" || got.Outcome != "exited" || got.ExitCode != 0 {
		c.t.Fatalf("%v: %+v %s", a, got, err)
	}
	return got
}

func sh(script string, more ...args) args {
	a := args{"command": []string{"sh", "-c", script}}
	for _, m := range more {
		for k, v := range m {
			a[k] = v
		}
	}
	return a
}
