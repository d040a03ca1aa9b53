package sandbox

import (
	"slices"

	"sandglass/pkg/cgroup"
	"sandglass/pkg/hostid"
	"sandglass/pkg/plan"
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
	host, err := cgroup.Describe(r.cgroupOptions(""))
	if err != nil {
		return nil, err
	}
	tree := plan.Cgroup{Tree: host.Tree, Limits: map[string]string{}}
	for _, o := range host.Limits {
		tree.Limits[o.Limit] = o.Parent
		if o.Problem != "" {
			tree.Limits[o.Limit] = "not to be had: " + o.Problem
			if tree.Lacks == "" && (o.Limit != cgroup.IO || len(s.Limits.IO) > 0) && !slices.Contains(s.AllowDegraded, o.Limit) {
				tree.Lacks = o.Limit + " limit: " + o.Problem + " (--allow-degraded " + o.Limit + " accepts weaker means)"
			}
		}
	}
	return p.Explain(hostid.Available(), tree)
}
