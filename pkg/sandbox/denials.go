package sandbox

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/denials"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/seccomp"
)

// watchDenials gives the program a filter that asks where it refuses. Init's own
// stays as it is: the last thing that it does must not wait for an answer.
func (r *runner) watchDenials() error {
	if !r.spec.ExplainDenials && r.spec.Observe == nil {
		return nil
	}
	// Observing lets calls go on that the filter alone would have: the default
	// one's, so that nobody learns from a weaker one what it then allows.
	if r.spec.Observe != nil && r.plan.Filter.Name != seccomp.Default {
		return refusal.Newf("system calls are observed under the default profile alone, not under %s", refusal.Word(r.plan.Filter.Name)).
			Hint("leave --seccomp out")
	}
	w, err := r.newWatch()
	if err != nil {
		return refusal.Newf("denials cannot be told: seccomp profile %s: %v", refusal.Word(r.plan.Filter.Name), err).
			Hint("leave --explain-denials out")
	}
	w.Local, w.Ports = r.plan.Routes(), r.plan.Ports()
	w.Writable = rootfs.WritableNames(r.plan.Input)
	r.box.Denials = w
	r.box.Config.Seccomp, r.box.Config.Listener = w.Filter(), true
	return nil
}

func (r *runner) newWatch() (*denials.Watch, error) {
	if r.spec.Observe != nil {
		return denials.NewLearning(r.plan.Filter.BPF, r.spec.Observe)
	}
	return denials.New(r.plan.Filter.BPF)
}

// fillDenials lists what was refused.
func (r *runner) fillDenials() {
	if r.box.Denials != nil {
		r.result.Denied, r.result.DeniedMore = r.box.Denials.Denied()
	}
}
