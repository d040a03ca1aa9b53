package doctor

import (
	"os"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/launch"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
)

func limitLayer(limit string) string { return limit + " limit" }

// limits makes a real control group for each limit, sets it, and removes it.
func (e *examiner) limits() []Layer {
	places := map[string]string{}
	if h, err := cgroup.Describe(cgroup.Options{}); err == nil {
		for _, o := range h.Limits {
			places[o.Limit] = o.Parent
		}
	}
	d := policy.Default().Limits
	var list []Layer
	for _, t := range []struct {
		limit string
		set   cgroup.Limits
	}{
		{cgroup.Memory, cgroup.Limits{MemoryMax: d.Memory}},
		{cgroup.CPU, cgroup.Limits{CPUQuotaUS: d.MilliCPU * 100}},
		{cgroup.Pids, cgroup.Limits{PidsMax: d.Pids}},
		{cgroup.IO, cgroup.Limits{IO: anyDisk()}},
	} {
		if t.limit == cgroup.IO && len(t.set.IO) == 0 {
			list = append(list, Layer{Name: limitLayer(t.limit), State: NotTried, Cause: "this host shows no block device to limit"})
			continue
		}
		list = append(list, e.limit(t.limit, t.set, places[t.limit]))
	}
	return list
}

func (e *examiner) limit(name string, set cgroup.Limits, place string) Layer {
	l := Layer{Name: limitLayer(name), State: Works}
	g, err := cgroup.Create(cgroup.Options{ID: cgroup.NewID(), HostUID: e.id.HostUID}, set)
	if err != nil {
		l.State, l.Flag = Less, "--allow-degraded "+name
		l.Cause = strings.TrimPrefix(err.Error(), name+" limit: ")
		if r, ok := err.(*refusal.Error); ok {
			l.Remedies = r.Hints
		}
		for i, h := range l.Remedies {
			if h == l.Flag {
				l.Remedies[i] += "   # " + result.Weaker(name)
			}
		}
		return l
	}
	defer g.Close()
	if g.InitFD() >= 0 { // a run's init begins in it
		child := launch.Trial{Self: e.self, Identity: e.id, Argv: []string{arg0, noNewPrivs}, Group: g}
		if r := child.Run(); r.What != "" {
			return failed(l.Name, r)
		}
	}
	version := "cgroup v2"
	if g.EnforcedBy(name) == result.ByCgroup1 {
		version = "cgroup v1"
	}
	l.Detail = version + ", below " + place
	if notes := g.Notes(); len(notes) > 0 {
		l.State, l.Cause = Less, strings.Join(notes, "; ")
	}
	return l
}

// anyDisk is a rate that no disk reaches, on the first disk of this host. The
// group that has it is empty.
func anyDisk() []cgroup.IOLimit {
	const wide = 1 << 30
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		return nil
	}
	for _, d := range entries {
		dir := "/sys/block/" + d.Name()
		if size, err := os.ReadFile(dir + "/size"); err != nil || strings.TrimSpace(string(size)) == "0" {
			continue
		}
		dev, err := os.ReadFile(dir + "/dev")
		if err != nil {
			continue
		}
		major, minor, _ := strings.Cut(strings.TrimSpace(string(dev)), ":")
		a, err1 := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err1 == nil && err2 == nil {
			return []cgroup.IOLimit{{Major: uint32(a), Minor: uint32(b), ReadIOPS: wide}}
		}
	}
	return nil
}
