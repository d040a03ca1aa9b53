package main

import (
	"context"
	"errors"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandglass/pkg/result"
	"sandglass/pkg/sessionclient"
)

// The fields of the tools. None names anything of the host's.
type (
	codeInput struct {
		Language string   `json:"language" jsonschema:"the language of the code"`
		Code     string   `json:"code" jsonschema:"the source text to run"`
		Args     []string `json:"args,omitempty" jsonschema:"arguments of the program"`
		wishes
	}
	commandInput struct {
		Command []string `json:"command" jsonschema:"the program and its arguments, word for word; for a line of shell: sh, -c and the line"`
		wishes
	}
	// wishes are what both tools take.
	wishes struct {
		Stdin          string            `json:"stdin,omitempty" jsonschema:"text on the program's stdin, which is at its end otherwise"`
		Env            map[string]string `json:"env,omitempty" jsonschema:"environment variables of the program"`
		Files          []fileInput       `json:"files,omitempty" jsonschema:"files that are in /work when the program starts"`
		Artifacts      bool              `json:"artifacts,omitempty" jsonschema:"return the files that the program leaves in /out"`
		TimeoutSeconds *float64          `json:"timeout_seconds,omitempty" jsonschema:"time limit"`
		MemoryMB       *float64          `json:"memory_mb,omitempty" jsonschema:"memory in MiB, files that are written included"`
		DiskMB         *float64          `json:"disk_mb,omitempty" jsonschema:"files that are written, in MiB"`
		CPUs           *float64          `json:"cpus,omitempty" jsonschema:"CPUs to keep busy at once"`
		Processes      *float64          `json:"processes,omitempty" jsonschema:"processes and threads"`
		AllowHosts     []string          `json:"allow_hosts,omitempty" jsonschema:"hosts that the program must reach, out of those that are offered"`
	}
	fileInput struct {
		Path       string  `json:"path" jsonschema:"relative to /work"`
		Text       *string `json:"text,omitempty" jsonschema:"its content as text"`
		Base64     *string `json:"base64,omitempty" jsonschema:"or any bytes as base64"`
		Executable bool    `json:"executable,omitempty" jsonschema:"whether it may be executed"`
	}
)

// output is a tool's answer.
type output struct {
	Outcome         string     `json:"outcome" jsonschema:"exited, or what ended the program: signaled, timeout, cpu_time, memory, output"`
	ExitCode        int        `json:"exit_code"`
	Stdout          string     `json:"stdout"`
	Stderr          string     `json:"stderr"`
	StdoutTruncated bool       `json:"stdout_truncated,omitempty"`
	StderrTruncated bool       `json:"stderr_truncated,omitempty"`
	Error           string     `json:"error,omitempty" jsonschema:"what is missing here"`
	WallMS          int64      `json:"wall_ms"`
	Artifacts       []artifact `json:"artifacts,omitempty"`
}

type artifact struct {
	Path    string `json:"path"`
	Type    string `json:"type"`
	Size    int64  `json:"size"`
	Text    string `json:"text,omitempty"`
	Base64  string `json:"base64,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

// tools are the server, for any number of clients.
type tools struct {
	o        *options
	box      *box
	server   *mcp.Server
	single   *mcp.Server                   // of requests that belong to no session, see streamable
	inputs   map[string]*jsonschema.Schema // of each tool
	calls    calls
	sessions sessions
}

func newTools(o *options, b *box, languages []string) (*tools, error) {
	t := &tools{o: o, box: b, inputs: map[string]*jsonschema.Schema{}, server: newServer(), single: newServer()}
	code, err := schemaOf[codeInput](o)
	if err != nil {
		return nil, err
	}
	for _, l := range languages {
		code.Properties["language"].Enum = append(code.Properties["language"].Enum, l)
	}
	command, err := schemaOf[commandInput](o)
	if err != nil {
		return nil, err
	}
	open := len(o.base.Hosts)+len(o.offered) > 0
	hints := &mcp.ToolAnnotations{OpenWorldHint: &open}
	t.inputs["run_code"], t.inputs["run_command"] = code, command
	for _, s := range []*mcp.Server{t.server, t.single} {
		mcp.AddTool(s, &mcp.Tool{Name: "run_code", Description: "Run source code in " + o.about(), InputSchema: code, Annotations: hints}, t.runCode)
		mcp.AddTool(s, &mcp.Tool{Name: "run_command", Description: "Run a command in " + o.about(), InputSchema: command, Annotations: hints}, t.runCommand)
		s.AddReceivingMiddleware(t.noNulls)
	}
	t.server.AddReceivingMiddleware(t.sessions.named)
	return t, nil
}

// newServer has the same tools from its start to its end and writes clients no log:
// none has anything to subscribe to, which would keep a connection for good.
func newServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "sandglass", Version: version},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
}

func (t *tools) runCode(ctx context.Context, call *mcp.CallToolRequest, in codeInput) (*mcp.CallToolResult, output, error) {
	return t.run(ctx, call, sessionclient.Request{Lang: in.Language, Code: in.Code, Args: in.Args}, &in.wishes)
}

func (t *tools) runCommand(ctx context.Context, call *mcp.CallToolRequest, in commandInput) (*mcp.CallToolResult, output, error) {
	if len(in.Command) == 0 {
		return nil, output{}, errors.New("command is empty")
	}
	return t.run(ctx, call, sessionclient.Request{Command: in.Command}, &in.wishes)
}

// run is one call. An error is told to the model, which can do something about it.
func (t *tools) run(ctx context.Context, call *mcp.CallToolRequest, q sessionclient.Request, w *wishes) (*mcp.CallToolResult, output, error) {
	ctx, stop := t.calls.tie(ctx, call)
	defer stop()
	if err := t.o.grant(&q, w); err != nil {
		return nil, output{}, err
	}
	c, err := t.box.get(ctx)
	if err != nil {
		return nil, output{}, err
	}
	res, err := c.Run(ctx, q, nil)
	if err != nil {
		return nil, output{}, told(err)
	}
	if res.Outcome == result.Failed || res.Outcome == result.Canceled {
		return nil, output{}, ended(&res)
	}
	out, err := answer(&res)
	return nil, out, err
}

// ended is a run that has no outcome of its program's.
func ended(res *result.Result) error {
	what := "the run failed"
	if res.Outcome == result.Canceled {
		what = "the run was canceled"
	}
	if res.Error != "" {
		what += ": " + res.Error
	}
	return errors.New(what)
}

// answer is the result as the model sees it. All of it is JSON: what the program
// printed cannot be taken for a field.
func answer(r *result.Result) (output, error) {
	stdout, err := r.Stdout.Captured()
	if err != nil {
		return output{}, err
	}
	stderr, err := r.Stderr.Captured()
	if err != nil {
		return output{}, err
	}
	out := output{
		Outcome: string(r.Outcome), ExitCode: r.ExitCode, Error: r.Error, WallMS: r.WallMS,
		Stdout: text(stdout), Stderr: text(stderr), StdoutTruncated: r.Stdout.Truncated, StderrTruncated: r.Stderr.Truncated,
	}
	for _, a := range r.Artifacts {
		out.Artifacts = append(out.Artifacts, artifact{Path: a.Path, Type: a.Type, Size: a.Size, Text: a.Text, Base64: a.Base64, Skipped: a.Skipped})
	}
	return out, nil
}

// text is output for a reader of text: what is no UTF-8 is shown as U+FFFD.
func text(b []byte) string {
	return strings.ToValidUTF8(string(b), "\ufffd")
}
