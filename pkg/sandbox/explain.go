package sandbox

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/hostid"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
)

// Explain says what Run would do with this Spec on this host, and does nothing.
func Explain(s Spec) (*plan.Explanation, error) {
	if err := CheckCaller(); err != nil {
		return nil, err
	}
	p, err := plan.Build(s.Spec)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	r := &runner{spec: &s}
	options := r.cgroupOptions("")
	host, err := cgroup.Describe(options)
	if err != nil {
		return nil, err
	}
	who, why := whose(&s, p)
	tree := plan.Cgroup{Tree: host.Tree, Limits: map[string]string{}}
	for _, o := range host.Limits {
		tree.Limits[o.Limit] = o.Parent
		if o.Problem != "" {
			tree.Limits[o.Limit] = "not to be had: " + o.Problem
		}
	}
	if lacks := host.Refused(options, p.Cgroup); lacks != nil {
		tree.Lacks = lacks.What + " (" + lacks.Hints[len(lacks.Hints)-1] + " accepts weaker means)"
	}
	if why != nil && tree.Lacks == "" {
		tree.Lacks = why.What
	}
	return p.Explain(who, tree)
}

// whose says who the sandbox would be on the host, by what a run looks at too.
func whose(s *Spec, p *plan.Plan) (plan.Host, *refusal.Error) {
	if hostid.Available() {
		if s.HostID == policy.HostIDCaller {
			return plan.Host{}, asRoot()
		}
		return plan.Host{Own: true, Mapped: true}, nil
	}
	if s.HostID == policy.HostIDCaller {
		return plan.Host{Why: "--host-id caller"}, nil
	}
	self := s.InitPath
	if self == "" {
		self = "/proc/self/exe"
	}
	_, why := ownIDs(s, self)
	if why == nil {
		items, err := p.Items(nil)
		if err == nil {
			why = closedItem(items)
		}
	}
	if why == nil {
		return plan.Host{Own: true}, nil
	}
	if s.HostID == policy.HostIDOwn {
		return plan.Host{}, why
	}
	return plan.Host{Why: why.What}, nil
}
