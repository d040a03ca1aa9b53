package sandbox

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/denials"
)

// watchDenials gives the program a filter that asks where it refuses. Init's own
// stays as it is: the last thing that it does must not wait for an answer.
func (r *runner) watchDenials() error {
	if !r.spec.ExplainDenials {
		return nil
	}
	w, err := denials.New(r.plan.Filter.BPF)
	if err != nil {
		return refusal.Newf("--explain-denials: seccomp profile %s: %v", refusal.Word(r.plan.Filter.Name), err).
			Hint("leave --explain-denials out")
	}
	r.box.Denials = w
	r.box.Config.Seccomp, r.box.Config.Listener = w.Filter(), true
	return nil
}

// fillDenials lists what was refused.
func (r *runner) fillDenials() {
	if r.box.Denials != nil {
		r.result.Denied, r.result.DeniedMore = r.box.Denials.Denied()
	}
}
