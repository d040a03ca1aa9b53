package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/sandbox/outside"

	"golang.org/x/sys/unix"
)

// job is one run of a program, by the command or by the API.
type job struct {
	*program
	n   int
	via string // cli, api or session
	rnd *rand.Rand
	to  *member // the session
}

func (j *job) seed() uint64 { return uint64(j.n) }

// ended is what a run came to.
type ended struct {
	job            *job
	stdout, stderr []byte
	res            result.Result
	said           bool  // there is a result
	exit           int   // of the command
	err            error // of the API
	pid            int   // of the supervisor
	dir            string
	took           time.Duration
	outlived       bool // the session was killed
}

// killed says that nobody was left to clean up: a SIGTERM may come before the
// command listens to it.
func (e *ended) killed() bool {
	return e.outlived || e.job.via == "cli" && (e.job.end.kill() || e.job.end == cancelsSoon && !e.said)
}

// patience is how long a run may take before it is a hang.
const patience = 3 * time.Minute

// mark is in the environment of every process of a run.
func mark(n int) string { return "SOAK_RUN=" + strconv.Itoa(n) + "." }

// args is the command line that follows "sandglass run".
func (s *soak) args(j *job, dir string) []string {
	list := append(strings.Fields(j.flags), "-e", mark(j.n))
	if !strings.Contains(j.flags, "--timeout") {
		list = append(list, "--timeout", "60s")
	}
	if !strings.Contains(j.flags, "-m ") {
		list = append(list, "-m", "64m")
	}
	if len(s.degraded) > 0 {
		list = append(list, "--allow-degraded", strings.Join(s.degraded, ","))
	}
	if j.out {
		list = append(list, "--out", dir)
	}
	switch {
	case j.code != "":
		return append(list, "--lang", "python", "-c", j.code)
	case j.prog:
		return append(append(list, "-v", s.o.prog+":"+inside, "--", inside), j.argv...)
	}
	return append(append(list, "--"), j.argv...)
}

// run runs a job and judges it.
func (s *soak) run(j *job) (*ended, string) {
	e := &ended{job: j, dir: filepath.Join(s.dir, "out-"+strconv.Itoa(j.n))}
	defer os.RemoveAll(e.dir)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun := time.Now()
	why := ""
	switch {
	case j.act != nil:
		e.said = true
		why = j.act(s, ctx, e)
	case j.via == "session":
		s.runSession(ctx, e)
	case j.via == "cli":
		s.runCLI(ctx, e)
	default:
		s.runAPI(ctx, e)
	}
	e.took = time.Since(begun)
	if ctx.Err() != nil {
		return e, fmt.Sprintf("no end within %v", patience)
	}
	if j.act != nil {
		return e, why
	}
	return e, s.judge(e)
}

// signalOf is what the caller sends.
func (j *job) signalOf() syscall.Signal {
	if j.end.kill() {
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

// moment is when the caller acts: it never comes for a run that it waits for.
func (j *job) moment(out *output) <-chan struct{} {
	switch {
	case j.end == waits:
		return nil
	case j.end.soon():
		ch := make(chan struct{})
		time.AfterFunc(time.Duration(j.rnd.Int64N(int64(30*time.Millisecond))), func() { close(ch) })
		return ch
	}
	return out.ready
}

// until is a context that ends at that moment.
func (j *job) until(ctx context.Context, out *output) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	moment := j.moment(out)
	go func() {
		select {
		case <-moment:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (s *soak) runCLI(ctx context.Context, e *ended) {
	j := e.job
	file, err := unix.MemfdCreate("result", unix.MFD_CLOEXEC)
	if err != nil {
		e.err = err
		return
	}
	sink := os.NewFile(uintptr(file), "result")
	defer sink.Close()
	out, errs := newOutput(), newOutput()
	cmd := exec.CommandContext(ctx, s.o.sandglass, append([]string{"run", "--result-fd", "3"}, s.args(j, e.dir)...)...)
	cmd.WaitDelay, cmd.Dir, cmd.Env = 30*time.Second, s.dir, os.Environ()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, errs, []*os.File{sink}
	if j.stdin != nil {
		cmd.Stdin = bytes.NewReader(j.stdin(j.seed()))
	}
	if e.err = cmd.Start(); e.err != nil {
		return
	}
	e.pid = cmd.Process.Pid
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-j.moment(out):
		cmd.Process.Signal(j.signalOf())
		err = <-done
	case err = <-done:
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.err = err
	}
	e.exit, e.stdout, e.stderr = exitCode(cmd.ProcessState), out.bytes(), errs.bytes()
	if text, _ := io.ReadAll(io.NewSectionReader(sink, 0, 16<<20)); len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&e.res); err != nil {
			e.err = fmt.Errorf("the result: %w", err)
			return
		}
		e.said = true
	}
}

// runAPI lets the API capture the streams, unless the caller waits for a line.
func (s *soak) runAPI(ctx context.Context, e *ended) {
	j := e.job
	e.pid, e.said = os.Getpid(), true
	p, err := policy.ParseRun(s.args(j, e.dir))
	if err != nil {
		e.err, e.res.Outcome = err, result.Refused
		var why *sandbox.Error
		if errors.As(err, &why) {
			e.res.ExitCode = why.Exit
		}
		return
	}
	spec := sandbox.Spec{Spec: p.Spec, InitPath: s.initPath(), Outside: outside.New}
	if j.spec != nil {
		j.spec(&spec)
	}
	if j.stdin != nil {
		spec.Stdin = bytes.NewReader(j.stdin(j.seed()))
	}
	out := newOutput()
	if j.end != waits {
		spec.Stdout = out
	}
	ctx, cancel := j.until(ctx, out)
	defer cancel()
	e.res, e.err = sandbox.Run(ctx, spec)
	e.stdout, e.stderr = captured(e.res.Stdout), captured(e.res.Stderr)
	if j.end != waits {
		e.stdout = out.bytes()
	}
}

// initPath is the binary for PID 1, "" for this one.
func (s *soak) initPath() string {
	if s.o.initPath {
		return s.o.sandglass
	}
	return ""
}

// output is a stream that says when its first line is there.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	ready chan struct{}
	said  bool
}

func newOutput() *output { return &output{ready: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p)
	if !o.said && bytes.HasPrefix(o.buf.Bytes(), []byte("ready\n")) {
		o.said = true
		close(o.ready)
	}
	return len(p), nil
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes())
}
