package cgroup

import (
	"slices"

	"sandglass/internal/refusal"

	"golang.org/x/sys/unix"
)

// Host is what this host offers, for plan and doctor. Nothing was changed to
// find it out.
type Host struct {
	Tree string // "v2", "hybrid", "v1" or "none"
	// Version is whose controllers would be used: 2, 1, or 0 for none.
	Version int
	Limits  []Offer // memory, pids, cpu, io
	// Moves: the caller would move itself to the leaf sandglass-supervisor.
	Moves bool
}

// Offer is one limit here. It is available when Problem is "".
type Offer struct {
	Limit   string
	Parent  string // directory below which the group would be made, "" if unknown
	Problem string // the cause, as a refusal would say it
	Hints   []string
}

// Describe says which tree this host has, which limits it can hold, and where.
// Its answer is a forecast: only Create tries.
func Describe(o Options) (Host, error) {
	if err := validateParent(o.Parent); err != nil {
		return Host{}, err
	}
	s, err := findSelf(o)
	if err != nil {
		return Host{}, err
	}
	t, err := fullTree(o, s)
	if err != nil {
		return Host{}, err
	}
	h := Host{Tree: t.name, Version: t.version}
	var p parentV2
	var why *cause
	if t.version == 2 {
		p, why = t.planV2(o.Parent)
		h.Moves = why == nil && p.leave
	}
	for _, ctrl := range []string{"memory", "pids", "cpu", "blkio"} {
		f := Offer{Limit: limitOf(ctrl)}
		c := why
		switch t.version {
		case 0:
			c = noTree(t.root)
		case 1:
			if f.Parent, c = t.parentV1(ctrl, o.Parent); c == nil {
				c = canMake(f.Parent, explainV1)
			}
		case 2:
			f.Parent = p.path
			if c == nil {
				c = p.forecast(f.Limit)
			}
		}
		if c != nil {
			f.Problem, f.Hints = c.what, c.hints
		}
		h.Limits = append(h.Limits, f)
	}
	return h, nil
}

// Refused is the refusal that Create would give for these limits here, nil for
// none, in the same words.
func (h *Host) Refused(o Options, l Limits) *refusal.Error {
	var missing []lack
	for _, f := range h.Limits {
		if f.Problem != "" && !o.Allow[f.Limit] && slices.Contains(l.asked(), f.Limit) {
			missing = append(missing, lack{f.Limit, because(f.Problem, f.Hints...)})
		}
	}
	return refuse(missing)
}

// canMake asks whether the caller may make a directory. For root every
// permission is granted but that of a read-only mount.
func canMake(path string, explain func(op, path string, err error) *cause) *cause {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return explain("write to", path, err)
	}
	return nil
}

// forecast says whether a controller is there or can be enabled.
func (p parentV2) forecast(limit string) *cause {
	path := p.path
	if p.chain {
		path = p.mount // it would be enabled from there
	}
	if c := canMake(path, explain); c != nil {
		return c
	}
	ctrls, err := readPath(path+"/cgroup.controllers", maxSmall)
	if err != nil {
		return explain("read", path+"/cgroup.controllers", err)
	}
	if !hasWord(ctrls, limit) {
		return noController(limit, path, ctrls, p.chain)
	}
	if !p.leave {
		return nil
	}
	if now, err := readPath(path+"/cgroup.subtree_control", maxSmall); err == nil && hasWord(now, limit) {
		return nil
	}
	return p.alone()
}
