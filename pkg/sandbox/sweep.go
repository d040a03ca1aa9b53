package sandbox

import (
	"path"

	"sandglass/pkg/cgroup"
)

// Swept is what Sweep has found.
type Swept struct {
	// Removed are the control groups that were left, by path: a run has one on
	// cgroup v2 and one for each controller on v1.
	Removed []string
	// Live counts the runs whose supervisors live. They were not touched.
	Live int
}

// Sweep removes what supervisors that were killed (SIGKILL, the kernel's
// out-of-memory killer) have left on this host, as far as the caller's rights
// go. That is control groups: processes, mounts, namespaces and host ids go with
// the processes that hold them. Each Run does the same where it makes its own
// groups. The error names what could not be removed; the rest was.
func Sweep() (Swept, error) {
	s, err := cgroup.SweepEverywhere(cgroup.Options{})
	live := map[string]bool{}
	for _, p := range s.Live {
		live[path.Base(p)] = true
	}
	return Swept{Removed: s.Removed, Live: len(live)}, err
}
