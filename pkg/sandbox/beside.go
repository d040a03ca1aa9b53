package sandbox

import (
	"context"
	"io"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/doctor/causes"
)

// nothing is a program that is nowhere: a run of it sets a whole sandbox up,
// which then has nothing to execute.
const nothing = "/nothing"

// beside puts what else this host lacks before the refusal of a limit, in one
// line: who allows that limit by name would else be refused again by the next
// layer, and learn of one after the other what one look at the host tells. It
// sets a sandbox up with nothing of the caller's in it, and runs nothing.
func (r *runner) beside(ctx context.Context, err error) error {
	limit, ok := err.(*refusal.Error)
	all := []string{cgroup.Memory, cgroup.CPU, cgroup.Pids, cgroup.IO}
	if !ok || !slices.ContainsFunc(all, func(l string) bool { return !slices.Contains(r.spec.AllowDegraded, l) }) {
		return err // this is that set-up
	}
	s := Default()
	s.Program.Command, s.Proc, s.AllowDegraded = []string{nothing}, r.spec.Proc, all
	s.InitPath, s.Stdout, s.Stderr = r.spec.InitPath, io.Discard, io.Discard
	res, e := Run(ctx, s)
	if e == nil || res.ExitCode == refusal.ExitNotFound || ctx.Err() != nil {
		return err
	}
	both := refusal.Newf("%s; %s", res.Error, limit.What)
	both.Hints = causes.Together(res.Hints, limit.Hints)
	return both
}
