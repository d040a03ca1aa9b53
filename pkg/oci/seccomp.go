package oci

import (
	"runtime"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/profile"
	profiles "sandglass/seccomp-profiles"
)

// arch is the name of the architecture of this binary.
func arch() string {
	if runtime.GOARCH == "arm64" {
		return "SCMP_ARCH_AARCH64"
	}
	return "SCMP_ARCH_X86_64"
}

// filter says the run's filter as rules. Only the built-in ones have a source; one
// from a file is compiled, and guessing at its rules would be another policy.
func filter(f seccomp.Filter) (Seccomp, error) {
	source := profiles.Source(f.Name)
	if source == "" {
		return Seccomp{}, refusal.Newf("--oci: %s is a compiled filter, and the format holds rules only", refusal.Word(f.Name)).
			Hint("sandglass plan --json   # names the filter and its digest").
			Hint("the profiles that come with sandglass can be said: leave --seccomp out")
	}
	p, err := profile.Parse([]byte(source))
	if err != nil {
		return Seccomp{}, err
	}
	return rules(p, arch())
}

// maxRest bounds the rules of one call: a filter has at most 4096 instructions.
const maxRest = 256

// rules translates a profile. Foreign architectures stay out of the list: what
// it does not name is killed.
func rules(p *profile.Profile, arch string) (Seccomp, error) {
	s := Seccomp{Architectures: []string{arch}}
	s.DefaultAction, s.DefaultErrnoRet = action(p.Default)
	for _, c := range p.Calls {
		for _, r := range c.Rules {
			s.add(c.Name, r.Action, r.Args)
		}
		// The format has one default for all calls. Where a call's own refuses,
		// the common one does as well, with another errno. Where it allows,
		// everything but the rules above must be spelled out.
		if c.Otherwise == nil || c.Otherwise.Kind != profile.Allow {
			continue
		}
		rest, err := complement(c.Rules)
		if err != nil {
			return Seccomp{}, refusal.Newf("--oci: %s: %v", c.Name, err)
		}
		if len(rest) > maxRest {
			s.refused = append(s.refused, c.Name)
			continue
		}
		for _, args := range rest {
			s.add(c.Name, *c.Otherwise, args)
		}
	}
	return s, nil
}

// add appends a rule, and names without conditions to a group of their kind.
func (s *Seccomp) add(name string, a profile.Action, args []profile.Arg) {
	g := Group{Names: []string{name}}
	g.Action, g.ErrnoRet = action(a)
	for _, x := range args {
		g.Args = append(g.Args, Arg{Index: x.Index, Value: x.Value, ValueTwo: x.ValueTwo, Op: operators[x.Op]})
	}
	i := slices.IndexFunc(s.Syscalls, func(o Group) bool {
		return o.Action == g.Action && len(o.Args)+len(g.Args) == 0 && (o.ErrnoRet == nil || *o.ErrnoRet == *g.ErrnoRet)
	})
	if i >= 0 {
		s.Syscalls[i].Names = append(s.Syscalls[i].Names, name)
		return
	}
	s.Syscalls = append(s.Syscalls, g)
}

var operators = [...]string{
	profile.NE: "SCMP_CMP_NE", profile.LT: "SCMP_CMP_LT", profile.LE: "SCMP_CMP_LE", profile.EQ: "SCMP_CMP_EQ",
	profile.GE: "SCMP_CMP_GE", profile.GT: "SCMP_CMP_GT", profile.MaskedEQ: "SCMP_CMP_MASKED_EQ",
}

func action(a profile.Action) (name string, errno *uint) {
	switch a.Kind {
	case profile.Allow:
		return "SCMP_ACT_ALLOW", nil
	case profile.Log:
		return "SCMP_ACT_LOG", nil
	case profile.Errno:
		n := uint(a.Errno)
		return "SCMP_ACT_ERRNO", &n
	}
	return "SCMP_ACT_KILL_PROCESS", nil
}
