// Package learn makes a profile from the system calls that a program was seen to
// make. What it makes is never more than the default profile: a call is in it
// only where the default profile allows it.
package learn

import (
	"errors"
	"runtime"
	"slices"

	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
	profiles "sandglass/seccomp-profiles"
)

// needed are in every profile: a program is started, ends, comes back from its
// signal handlers, and says what went wrong.
func needed() []string {
	return []string{"execve", "exit", "exit_group", "restart_syscall", "rt_sigreturn", "write"}
}

// narrow are the calls of which only what was seen is allowed, by the arguments
// that say what kind of thing is asked for: socket families, clone's flags, the
// requests of ioctl. Of any other call all is allowed that the default profile
// allows of it.
func narrow(name string) (args []uint, otherwise profile.Action) {
	switch name {
	case "socket":
		return []uint{0, 1, 2}, profile.Action{Kind: profile.Errno, Errno: 97} // EAFNOSUPPORT
	case "clone":
		return []uint{0}, profile.Action{Kind: profile.Errno, Errno: 1} // EPERM
	case "ioctl":
		return []uint{1}, profile.Action{Kind: profile.Errno, Errno: 25} // ENOTTY
	}
	return nil, profile.Action{}
}

// maxKinds bounds what is kept of one call; a program that asks for more gets
// what the default profile allows.
const maxKinds = 64

// Log is what a program was seen to do.
type Log struct {
	base  *profile.Profile
	calls map[string]*seen
}

type seen struct {
	used    bool
	kinds   map[[6]uint64]bool // of a narrow call: low words of its arguments
	refused profile.Action     // the first refusal
}

// New is an empty log.
func New() (*Log, error) {
	base, err := profile.Parse([]byte(profiles.Source("default")))
	if err != nil {
		return nil, err
	}
	l := &Log{base: base, calls: map[string]*seen{}}
	for _, name := range needed() {
		l.calls[name] = &seen{used: true}
	}
	return l, nil
}

// Observe notes one call of this machine's architecture.
func (l *Log) Observe(number uint32, args [6]uint64, refused bool) {
	name, ok := sysnum.Name(runtime.GOARCH, number)
	if !ok {
		return // the profile refuses what has no name
	}
	s := l.calls[name]
	if s == nil {
		s = &seen{}
		l.calls[name] = s
	}
	if refused {
		if s.refused.Kind == 0 {
			s.refused = l.base.Decide(runtime.GOARCH, number, args)
		}
		return
	}
	s.used = true
	indices, _ := narrow(name)
	if len(indices) == 0 || len(s.kinds) > maxKinds {
		return
	}
	var kind [6]uint64
	for _, i := range indices {
		kind[i] = args[i] & 0xffffffff
	}
	if s.kinds == nil {
		s.kinds = map[[6]uint64]bool{}
	}
	s.kinds[kind] = true
}

var errWider = errors.New("the learned profile allows what the default one refuses: this is a bug of sandglass")

// Profile is what was seen, for this machine's architecture.
func (l *Log) Profile() (*profile.Profile, error) {
	p := &profile.Profile{Default: l.base.Default, Arches: []string{runtime.GOARCH}}
	var names []string
	for name := range l.calls {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if c := l.call(name, l.calls[name]); c != nil {
			p.Calls = append(p.Calls, c)
		}
	}
	if !within(p, l.base) {
		return nil, errWider
	}
	return p, nil
}

// call is what the profile says of one call, nil for nothing.
func (l *Log) call(name string, s *seen) *profile.Call {
	if _, ok := sysnum.Number(runtime.GOARCH, name); !ok {
		return nil
	}
	base := l.base.Call(name)
	switch {
	case base == nil:
		return nil
	case !s.used && s.refused.Kind == profile.Errno:
		// With the errno that the program has lived with.
		return &profile.Call{Name: name, Rules: []profile.Rule{{Action: s.refused}}}
	case !s.used:
		return nil
	case len(s.kinds) == 0 || len(s.kinds) > maxKinds:
		return &profile.Call{Name: name, Rules: base.Rules, Otherwise: base.Otherwise}
	}
	indices, otherwise := narrow(name)
	c := &profile.Call{Name: name, Otherwise: &otherwise}
	for kind := range s.kinds {
		r := profile.Rule{Action: profile.Action{Kind: profile.Allow}}
		for _, i := range indices {
			r.Args = append(r.Args, profile.Arg{Index: i, Op: profile.MaskedEQ, Value: 0xffffffff, ValueTwo: kind[i]})
		}
		c.Rules = append(c.Rules, r)
	}
	slices.SortFunc(c.Rules, func(a, b profile.Rule) int {
		return slices.CompareFunc(a.Args, b.Args, func(x, y profile.Arg) int {
			switch {
			case x.ValueTwo < y.ValueTwo:
				return -1
			case x.ValueTwo > y.ValueTwo:
				return 1
			}
			return 0
		})
	})
	return c
}

// Within says whether the default profile allows whatever p allows.
func (l *Log) Within(p *profile.Profile) bool { return within(p, l.base) }

// within says whether base allows whatever p allows, on both sides of every
// condition of the two.
func within(p, base *profile.Profile) bool {
	for _, arch := range p.Arches {
		for nr := range uint32(1 << 10) {
			for _, args := range slices.Concat(edges.Calls(p, arch, nr), edges.Calls(base, arch, nr)) {
				if passes(p.Decide(arch, nr, args)) && !passes(base.Decide(arch, nr, args)) {
					return false
				}
			}
		}
	}
	return true
}

// passes: an errno of zero stands for a call that is answered and not made.
func passes(a profile.Action) bool {
	return a.Kind == profile.Allow || a.Kind == profile.Log || a.Kind == profile.Errno && a.Errno == 0
}
