package oci

import (
	"slices"
	"strings"
	"testing"

	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
	profiles "sandglass/seccomp-profiles"
)

// verdict is what a runtime makes of the rules: one that matches, or the default.
// Two that match and differ are a clash: the format does not say which wins.
func (s *Seccomp) verdict(name string, args [6]uint64) (action string, errno uint, clash bool) {
	action, errno = s.DefaultAction, *s.DefaultErrnoRet
	matches := 0
	for _, g := range s.Syscalls {
		if !slices.Contains(g.Names, name) || !g.matches(args) {
			continue
		}
		before, beforeErrno := action, errno
		action, errno = g.Action, 0
		if g.ErrnoRet != nil {
			errno = *g.ErrnoRet
		}
		clash = clash || matches > 0 && (action != before || errno != beforeErrno)
		matches++
	}
	return action, errno, clash
}

func (g *Group) matches(args [6]uint64) bool {
	for _, a := range g.Args {
		v := args[a.Index]
		ok := map[string]bool{
			"SCMP_CMP_NE": v != a.Value, "SCMP_CMP_EQ": v == a.Value, "SCMP_CMP_LT": v < a.Value, "SCMP_CMP_LE": v <= a.Value,
			"SCMP_CMP_GT": v > a.Value, "SCMP_CMP_GE": v >= a.Value, "SCMP_CMP_MASKED_EQ": v&a.Value == a.ValueTwo,
		}[a.Op]
		if !ok {
			return false
		}
	}
	return true
}

// The rules mean what the profile means: the same where its own default of a
// call allows, and never more.
func TestRulesMeanWhatTheProfileSays(t *testing.T) {
	p, err := profile.Parse([]byte(profiles.Source("default")))
	if err != nil {
		t.Fatal(err)
	}
	f, err := seccomp.Load(seccomp.Default)
	if err != nil {
		t.Fatal(err)
	}
	s, err := filter(f)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ioprio_set", "setpriority"}; !slices.Equal(sorted(s.refused), want) {
		t.Errorf("not said: %v, want %v", s.refused, want)
	}
	tried := 0
	for _, name := range sysnum.Names() {
		c := p.Call(name)
		if c == nil {
			c = &profile.Call{}
		}
		nr, ok := sysnum.Number("amd64", name)
		if !ok {
			continue
		}
		for _, args := range edges.Calls(p, "amd64", nr) {
			tried++
			want := p.Decide("amd64", nr, args)
			wantAction, wantErrno := action(want)
			got, errno, clash := s.verdict(name, args)
			same := got == wantAction && (wantErrno == nil || errno == *wantErrno)
			exact := c.Otherwise == nil || c.Otherwise.Kind == profile.Allow && !slices.Contains(s.refused, name)
			refused := !strings.Contains(got, "ALLOW") && !strings.Contains(got, "LOG")
			if clash || exact && !same || !same && !refused {
				t.Errorf("%s(%#x): %s %d, clash %t, the profile says %v", name, args, got, errno, clash, want)
			}
		}
	}
	if tried < 5000 {
		t.Errorf("only %d calls were tried", tried)
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func TestComplement(t *testing.T) {
	masked := func(index uint, mask, value uint64) profile.Arg {
		return profile.Arg{Index: index, Op: profile.MaskedEQ, Value: mask, ValueTwo: value}
	}
	rules := []profile.Rule{{Args: []profile.Arg{masked(0, 3, 1)}}, {Args: []profile.Arg{masked(0, 3, 2), masked(5, 4, 4)}}}
	rest, err := complement(rules)
	if err != nil {
		t.Fatal(err)
	}
	for a := range uint64(8) {
		for b := range uint64(8) {
			n := 0
			for _, args := range rest {
				ok := true
				for _, x := range args {
					ok = ok && map[uint]uint64{0: a, 5: b}[x.Index]&x.Value == x.ValueTwo
				}
				if ok {
					n++
				}
			}
			want := 1
			if a&3 == 1 || a&3 == 2 && b&4 == 4 {
				want = 0
			}
			if n != want {
				t.Errorf("(%d, %d) is in %d sets of the complement, want %d", a, b, n, want)
			}
		}
	}
	if _, err := complement([]profile.Rule{{Args: []profile.Arg{{Op: profile.GT, Value: 5}}}}); err != errNoCube {
		t.Errorf("an order has no complement: got %v", err)
	}
	if rest, _ := complement([]profile.Rule{{}}); len(rest) != 0 {
		t.Errorf("the complement of everything is %v", rest)
	}
}
