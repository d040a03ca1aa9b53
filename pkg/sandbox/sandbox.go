// Package sandbox runs one program in one fresh sandbox. It is what the
// sandglass command itself calls.
//
// A sandbox's PID 1 is the running executable, started again. So a program
// that uses this package calls Init first thing in main, or names the
// sandglass binary in Spec.InitPath. A program that links C (cgo) must do the
// latter: Go cannot drop the privileges of all threads at once there.
//
//	func main() {
//		sandbox.Init()
//		spec := sandbox.Default()
//		spec.Program.Command = []string{"python3", "-c", code}
//		res, err := sandbox.Run(ctx, spec)
//	}
//
// README.md has a whole program, and how to build it.
package sandbox

import (
	"context"
	"io"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/launch"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
)

// Spec is one run: the policy, and where its streams go.
type Spec struct {
	policy.Spec

	// Stdin is passed on when policy.Spec.Stdin is set; otherwise the program's
	// stdin is at end of file.
	Stdin io.Reader
	// Stdout and Stderr get the program's output, each at most Limits.Output
	// bytes. One that is nil is captured into the result instead.
	Stdout, Stderr io.Writer
	// Window is the size of the terminal that policy.Spec.TTY asks for, and Resize,
	// which may be nil, has later ones. All output then goes to Stdout: a terminal
	// has one stream. At the end of Stdin the program gets the terminal's own
	// character for that (Ctrl-D).
	Window Window
	Resize <-chan Window
	// Abort ends the collection for Spec.Out when it is closed. Without it only
	// the collection's own limits do, once ctx has ended the program.
	Abort <-chan struct{}
	// Guard, which may be nil, is called before anything is made that would stay
	// when this process was killed. A command begins to catch signals there: until
	// then one ends it, and init with it, while init starts.
	Guard func()
	// Observe has every system call of the program reported, by number and
	// registers, and whether it was refused; Seccomp must be the default profile.
	// It is called from one goroutine, and not after Run has returned.
	Observe func(number uint32, args [6]uint64, refused bool)
	// Outside makes who answers for policy.Spec.Hosts, and is called once for a
	// run that has some: New of package outside.
	Outside func(*policy.Spec) (Outside, error)
	// InitPath is the binary that becomes PID 1 inside; "" is this executable.
	InitPath string
}

// Result is what a run came to.
type Result = result.Result

// Window is the size of a terminal in characters.
type Window = launch.Window

// Error is a refusal: nothing was run. What says why, Hints what to do. Error() is
// What alone: a program for people prints the Hints too, which errors.As leads to.
type Error = refusal.Error

// Default is a Spec with the default policy and nothing to run yet.
func Default() Spec { return Spec{Spec: policy.Default()} }

// initCalled says that main let its executable be a sandbox's PID 1.
var initCalled bool

// Init must be the first call of main in a program that runs sandboxes. A
// sandbox's PID 1 does not come that far: package boxinit is initialized before
// main begins, and has it from there on.
func Init() { initCalled = true }

// Run runs the program and returns when nothing of it is left. Whatever the
// program did is in the Result; the error is non-nil only when sandglass
// refused (*Error), failed, or could not hand over all of it (*Incomplete).
// When ctx ends, the sandbox is killed and the outcome is result.Canceled; what
// it had left for Spec.Out is still collected, see Spec.Abort. Run may be
// called from many goroutines at once.
func Run(ctx context.Context, s Spec) (Result, error) {
	r := newResult(&s)
	err := run(ctx, &s, &r, nil)
	conclude(&r, err)
	return r, err
}

// conclude puts the error of a run into its result.
func conclude(r *Result, err error) {
	if err == nil {
		return
	}
	if ref, ok := err.(*refusal.Error); ok {
		r.Outcome, r.ExitCode, r.Error, r.Hints = result.Refused, ref.Exit, ref.What, ref.Hints
	} else if lost, ok := err.(*Incomplete); ok {
		r.Error, r.Hints = lost.What, lost.Hints
	} else if r.Outcome != result.Failed {
		r.Outcome, r.ExitCode, r.Error = result.Failed, refusal.ExitRefused, err.Error()
	}
	r.Hints = outOfFiles(r.Error, r.Hints)
}

// begin is what every sandbox of this process needs, and the first half of its
// plan, unless there is one.
func begin(s *Spec, made *plan.Plan) (self string, p *plan.Plan, err error) {
	if err := CheckCaller(); err != nil {
		return "", nil, err
	}
	if err := causes.Proc(); err != nil {
		return "", nil, err
	}
	if self, err = initPath(s); err != nil || made != nil {
		return self, made, err
	}
	p, err = plan.Begin(s.Spec)
	return self, p, err
}

func run(ctx context.Context, s *Spec, r *Result, made *plan.Plan) error {
	self, p, err := begin(s, made)
	if err != nil {
		return err
	}
	defer p.Close()
	c := &capture{}
	c.open(s)
	run := &runner{spec: s, plan: p, self: self, result: r}
	err = run.do(ctx)
	c.fill(r)
	if err == nil && run.lost != nil {
		return run.lost
	}
	return err
}

func initPath(s *Spec) (string, error) {
	if s.InitPath != "" {
		return s.InitPath, nil
	}
	if !initCalled {
		return "", refusal.Newf("sandbox.Init was not called at the start of main, and no InitPath is set").
			Hint("sandbox.Init()   // the first line of main").
			Hint("spec.InitPath = \"/usr/local/bin/sandglass\"   // or is given a binary that calls it")
	}
	if sys.LinksC() {
		return "", refusal.Newf("this program links C (cgo), and cannot be a sandbox's PID 1").
			Hint("CGO_ENABLED=0 go build   # links none; -tags netgo,osusergo is enough where only the standard library brings it in").
			Hint("spec.InitPath = \"/usr/local/bin/sandglass\"   // or is given a binary that does not")
	}
	return "/proc/self/exe", nil
}

// capture collects the streams that the caller gave no writer for.
type capture struct{ stdout, stderr *result.Capture }

func (c *capture) open(s *Spec) {
	if s.Stdout == nil {
		c.stdout = &result.Capture{}
		s.Stdout = c.stdout
	}
	if s.Stderr == nil {
		c.stderr = &result.Capture{}
		s.Stderr = c.stderr
	}
}

func (c *capture) fill(r *Result) {
	if c.stdout != nil {
		r.Stdout.Take(c.stdout)
	}
	if c.stderr != nil {
		r.Stderr.Take(c.stderr)
	}
}

func newResult(s *Spec) Result {
	return Result{Schema: result.Schema, PolicySHA256: s.Digest(), Limits: map[string]result.Limit{}}
}
