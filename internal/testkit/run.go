package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// patience is how long a run may take before the test calls it a hang. It is
// no measurement: a busy machine must not fail a test. EnvPatience shortens it
// where a hang is what is looked for.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(EnvPatience)); err == nil && d > 0 {
		return d
	}
	return 120 * time.Second
}()

// EnvPatience replaces how long a test waits for what must come, e.g. 10s.
const EnvPatience = "SANDGLASS_TEST_PATIENCE"

// Opts is how the binary is started. The zero value runs it as the test's own
// identity, with an empty stdin and next to no environment.
type Opts struct {
	Who   Who
	Stdin io.Reader
	Env   []string // the caller's environment; PATH and HOME are added when missing
	Dir   string
	// Verb is the command of sandglass, "" for run. The others get no flags added.
	Verb string
	// Strict adds no --allow-degraded.
	Strict bool
	// Files become descriptors 4 and up (3 is the result).
	Files []*os.File
	// Stdout and Stderr replace the capture.
	Stdout, Stderr io.Writer
	// Setup may change the command before it starts.
	Setup func(*exec.Cmd)
}

// Output is what a run came to.
type Output struct {
	Stdout, Stderr string
	Exit           int           // 128+n when signal n ended sandglass itself
	Result         result.Result // empty when HasResult is false
	HasResult      bool
	// PID was the supervisor's.
	PID int
}

// Run runs "sandglass run ARGS" to its end.
func Run(t testing.TB, o Opts, args ...string) Output {
	t.Helper()
	p := Start(t, o, args...)
	return p.Wait()
}

// Sh runs a shell script inside and returns what came of it.
func Sh(t testing.TB, who Who, script string, flags ...string) Output {
	t.Helper()
	return Run(t, Opts{Who: who}, append(append([]string{}, flags...), "--", "sh", "-c", script)...)
}

// Process is a run in progress.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	cancel context.CancelFunc
	ctx    context.Context
	result *os.File
	out    *lines
	err    *lines
	done   *Output
}

// Start starts a run. Its end is waited for when the test ends, at the latest.
func Start(t testing.TB, o Opts, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, out: newLines(), err: newLines()}
	p.ctx, p.cancel = context.WithTimeout(context.Background(), patience)
	p.result = tempResult(t)
	p.cmd = exec.CommandContext(p.ctx, Binary(t), arguments(o, args)...)
	p.cmd.WaitDelay = 10 * time.Second
	p.cmd.Stdin, p.cmd.Dir, p.cmd.Env = o.Stdin, o.Dir, environment(o)
	if p.cmd.Dir == "" {
		p.cmd.Dir = "/"
	}
	p.cmd.Stdout, p.cmd.Stderr = io.Writer(p.out), io.Writer(p.err)
	if o.Stdout != nil {
		p.cmd.Stdout = o.Stdout
	}
	if o.Stderr != nil {
		p.cmd.Stderr = o.Stderr
	}
	p.cmd.ExtraFiles = append([]*os.File{p.result}, o.Files...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.Who.credential()}
	if o.Setup != nil {
		o.Setup(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting sandglass: %v", err)
	}
	t.Cleanup(func() { p.Kill(); p.Wait() })
	return p
}

func arguments(o Opts, args []string) []string {
	if o.Verb != "" {
		return append([]string{o.Verb}, args...)
	}
	list := []string{"run", "--result-fd", "3"}
	if !o.Strict {
		list = append(list, o.Who.Flags()...)
	}
	return append(list, args...)
}

func environment(o Opts) []string {
	env := append([]string{}, o.Env...)
	add := func(key, value string) {
		for _, e := range env {
			if strings.HasPrefix(e, key+"=") {
				return
			}
		}
		env = append(env, key+"="+value)
	}
	add("PATH", "/usr/local/bin:/usr/bin:/bin")
	add("HOME", "/nonexistent")
	return env
}

// tempResult is a file without a name for the result.
func tempResult(t testing.TB) *os.File {
	t.Helper()
	f, err := os.CreateTemp("", "sandglass-result-")
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(f.Name())
	return f
}

// PID is the supervisor's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the supervisor a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// Stop stops the supervisor and waits until every thread of it stands: until then one
// of them may yet hear of what happens after the signal.
func (p *Process) Stop() {
	p.t.Helper()
	p.Signal(syscall.SIGSTOP)
	Eventually(p.t, "the supervisor stands", func() bool {
		tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(p.PID()) + "/task/*/stat")
		return len(tasks) > 0 && !slices.ContainsFunc(tasks, func(path string) bool { return state(path) != 'T' })
	})
}

// Kill sends SIGKILL to the supervisor if it still runs.
func (p *Process) Kill() { p.cmd.Process.Kill() }

// WaitLine waits until the program has printed a line with this text on
// stdout, and returns the line. It fails the test when the run ends without.
func (p *Process) WaitLine(text string) string {
	p.t.Helper()
	ctx, end := context.WithCancel(p.ctx)
	defer end()
	go func() {
		p.ended()
		end()
	}()
	line, ok := p.out.wait(ctx, text)
	if !ok {
		o := p.Wait()
		if line, ok = p.out.wait(p.ctx, text); ok { // its last words
			return line
		}
		p.t.Fatalf("the program never printed %q\nexit %d\nstdout: %s\nstderr: %s", text, o.Exit, o.Stdout, o.Stderr)
	}
	return line
}

// ended waits for the supervisor's end and leaves it to be waited for.
func (p *Process) ended() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// Wait waits for the supervisor's end.
func (p *Process) Wait() Output {
	p.t.Helper()
	if p.done != nil {
		return *p.done
	}
	// A line that is waited for must not be waited for after the end.
	err := p.cmd.Wait()
	p.out.close()
	p.err.close()
	timedOut := p.ctx.Err() != nil
	p.cancel()
	o := &Output{Stdout: p.out.String(), Stderr: p.err.String(), PID: p.cmd.Process.Pid, Exit: exitCode(p.cmd.ProcessState)}
	p.done = o
	p.readResult(o)
	if timedOut {
		p.t.Errorf("sandglass did not end within %v\nstdout: %s\nstderr: %s", patience, o.Stdout, o.Stderr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !timedOut && !errors.Is(err, os.ErrProcessDone) {
		p.t.Logf("waiting for sandglass: %v", err)
	}
	return *o
}

func (p *Process) readResult(o *Output) {
	defer p.result.Close()
	text, err := io.ReadAll(io.NewSectionReader(p.result, 0, 64<<20))
	if err != nil || len(text) == 0 {
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o.Result); err != nil {
		p.t.Errorf("the result is not valid: %v\n%s", err, text)
		return
	}
	o.HasResult = true
	if o.Result.Outcome != result.Refused { // of that there was no sandbox
		countWarm(o.Result.Warm)
	}
}

func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
