package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandglass/pkg/policy"
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
		Files          []fileInput       `json:"files,omitempty" jsonschema:"files that are in /work, the working directory, when the program starts"`
		Artifacts      bool              `json:"artifacts,omitempty" jsonschema:"return the files that the program leaves in /out"`
		TimeoutSeconds float64           `json:"timeout_seconds,omitempty" jsonschema:"time limit"`
		MemoryMB       float64           `json:"memory_mb,omitempty" jsonschema:"memory in MiB, files that are written included"`
		DiskMB         float64           `json:"disk_mb,omitempty" jsonschema:"files that are written, in MiB"`
		CPUs           float64           `json:"cpus,omitempty" jsonschema:"CPUs to keep busy at once"`
		Processes      float64           `json:"processes,omitempty" jsonschema:"processes and threads"`
		AllowHosts     []string          `json:"allow_hosts,omitempty" jsonschema:"hosts that the program must reach, out of those that are offered"`
	}
	fileInput struct {
		Path       string  `json:"path" jsonschema:"relative to /work"`
		Text       *string `json:"text,omitempty" jsonschema:"its content as text"`
		Base64     *string `json:"base64,omitempty" jsonschema:"or any bytes as base64"`
		Executable bool    `json:"executable,omitempty" jsonschema:"whether it may be executed"`
	}
)

// limitField is a limit that a model may choose, up to its ceiling.
type limitField struct {
	field, flag, unit string
	of                func(*wishes) float64
	most              func(*policy.Limits) float64 // in the field's unit
}

var limitFields = []limitField{
	{"timeout_seconds", "timeout", "s", func(w *wishes) float64 { return w.TimeoutSeconds }, func(l *policy.Limits) float64 { return l.Timeout.Seconds() }},
	{"memory_mb", "memory", "m", func(w *wishes) float64 { return w.MemoryMB }, func(l *policy.Limits) float64 { return float64(l.Memory) / (1 << 20) }},
	{"disk_mb", "disk", "m", func(w *wishes) float64 { return w.DiskMB }, func(l *policy.Limits) float64 { return float64(l.Disk) / (1 << 20) }},
	{"cpus", "cpus", "", func(w *wishes) float64 { return w.CPUs }, func(l *policy.Limits) float64 { return float64(l.MilliCPU) / 1000 }},
	{"processes", "pids-limit", "", func(w *wishes) float64 { return w.Processes }, func(l *policy.Limits) float64 { return float64(l.Pids) }},
}

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
	calls    calls
	sessions sessions
}

func newTools(o *options, b *box, languages []string) (*tools, error) {
	t := &tools{o: o, box: b, server: mcp.NewServer(&mcp.Implementation{Name: "sandglass", Version: version}, nil)}
	t.server.AddReceivingMiddleware(t.sessions.named)
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
	open := false
	hints := &mcp.ToolAnnotations{OpenWorldHint: &open}
	mcp.AddTool(t.server, &mcp.Tool{Name: "run_code", Description: "Run source code in " + o.about(), InputSchema: code, Annotations: hints}, t.runCode)
	mcp.AddTool(t.server, &mcp.Tool{Name: "run_command", Description: "Run a command in " + o.about(), InputSchema: command, Annotations: hints}, t.runCommand)
	return t, nil
}

// about is what a model should know of its sandbox.
func (o *options) about() string {
	net := "no network"
	if len(o.offered) > 0 {
		net = "no network but allow_hosts"
	}
	return fmt.Sprintf("a fresh sandbox that is thrown away afterwards: %s, nothing of the host's files, nothing left of an earlier run. "+
		"The working directory is /work. At most %s, %s of memory.", net, o.most.Timeout, policy.FormatSize(o.most.Memory))
}

// schemaOf is the schema of a tool's fields, without those that mean nothing here.
func schemaOf[T any](o *options) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	if o.artifacts == 0 {
		delete(s.Properties, "artifacts")
	}
	hosts := s.Properties["allow_hosts"]
	if len(o.offered) == 0 {
		delete(s.Properties, "allow_hosts")
		return s, nil
	}
	for _, h := range o.offered {
		hosts.Items.Enum = append(hosts.Items.Enum, h)
	}
	return s, nil
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

// told is an error as a model can use it.
func told(err error) error {
	var e *sessionclient.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case "busy":
		return fmt.Errorf("busy: %s; nothing was run, try again when a call has ended", e.What)
	case "canceled":
		return errors.New("the call was canceled before its run was started")
	case "closing":
		return errEnds
	}
	return err
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

// grant puts into a request what the model wishes and may have, and nothing else.
func (o *options) grant(q *sessionclient.Request, w *wishes) error {
	q.Env, q.Options = w.Env, map[string]any{}
	if w.Stdin != "" {
		q.Stdin = []byte(w.Stdin)
	}
	for _, f := range w.Files {
		file := sessionclient.File{Path: f.Path, Exec: f.Executable}
		switch {
		case (f.Text == nil) == (f.Base64 == nil):
			return fmt.Errorf("the file %q has one of text and base64", f.Path)
		case f.Text != nil:
			file.Data = []byte(*f.Text)
		default:
			var err error
			if file.Data, err = base64.StdEncoding.DecodeString(*f.Base64); err != nil {
				return fmt.Errorf("the file %q: %v", f.Path, err)
			}
		}
		q.Files = append(q.Files, file)
	}
	if w.Artifacts && o.artifacts > 0 {
		q.Inline = o.artifacts
	}
	if err := o.grantLimits(q, w); err != nil {
		return err
	}
	for _, h := range w.AllowHosts {
		// Word for word: a host that is read anew here and by the session could be two.
		if !slices.Contains(o.offered, h) {
			return fmt.Errorf("the host %q is not offered; offered are: %s", h, strings.Join(o.offered, ", "))
		}
	}
	if len(w.AllowHosts) > 0 {
		q.Options["allow-host"] = w.AllowHosts
	}
	return nil
}

// grantLimits holds the model's wishes against the ceilings by what the session
// will make of them, and not by the text of a number.
func (o *options) grantLimits(q *sessionclient.Request, w *wishes) error {
	var list []policy.Option
	for _, f := range limitFields {
		if v := f.of(w); v != 0 {
			s := strconv.FormatFloat(v, 'f', -1, 64) + f.unit
			list = append(list, policy.Option{Name: f.flag, Values: []string{s}})
			q.Options[f.flag] = s
		}
	}
	have, err := o.limits(list...)
	if err != nil {
		return err
	}
	if have.Output == policy.Default().Limits.Output {
		q.Options["output-limit"] = strconv.Itoa(outputBytes)
	}
	if name := beyond(&have, &o.most); name != "" {
		i := slices.IndexFunc(limitFields, func(f limitField) bool { return f.flag == name })
		if i < 0 {
			return fmt.Errorf("these limits together make --%s larger than it may be", name)
		}
		return fmt.Errorf("%s is more than this server allows: at most %s", limitFields[i].field, strconv.FormatFloat(limitFields[i].most(&o.most), 'g', 6, 64))
	}
	return nil
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
