package doctor

import (
	"context"
	"io"
	"os"
	"strings"

	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// run starts the real thing: a run with no flags, and where that is refused one
// with the flags that the limits say it needs.
func (e *examiner) run(ctx context.Context, limits []Layer) {
	r := &e.report.Run
	res, err := trivial(ctx, nil)
	if err == nil {
		*r = Run{State: Works}
		return
	}
	*r = Run{State: DoesNot, Error: res.Error, Hints: res.Hints}
	allow := degraded(limits)
	if len(allow) == 0 {
		return
	}
	r.Flags = allowFlag + strings.Join(allow, ",")
	less, err := trivial(ctx, allow)
	if err == nil {
		r.State = Less
		return
	}
	// What no flag mends is what counts.
	r.Error, r.Hints = less.Error, less.Hints
}

// trivial runs true, or where the host's own view has none this binary's
// "version", in a sandbox of the default policy.
func trivial(ctx context.Context, allow []string) (sandbox.Result, error) {
	s := sandbox.Default()
	s.AllowDegraded = allow
	s.Stdout, s.Stderr = io.Discard, io.Discard
	exe, err := os.Executable()
	if err == nil && !isThere("/usr/bin/true") && !isThere("/bin/true") {
		s.Program.File, s.Program.Args = exe, []string{"version"}
	} else {
		s.Program.Command = []string{"true"}
	}
	res, err := sandbox.Run(ctx, s)
	if err == nil && (res.Outcome != result.Exited || res.ExitCode != 0) {
		err = &ended{res.Outcome}
		res.Error = err.Error()
	}
	return res, err
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ended is a program that did not come to its own good end.
type ended struct{ how result.Outcome }

func (e *ended) Error() string { return "the sandbox's program did not end well: " + string(e.how) }
