// Package compile turns a profile into a filter, with nothing but the standard
// library: it serves people with profiles of their own, who need no libseccomp
// then. The profiles that come with sandglass are compiled by cmd/seccompc.
//
// It does not trust itself: a filter leaves it only after the interpreter has
// run it for every call on both sides of every condition, and each answer was
// what the profile says.
package compile

import (
	"fmt"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
)

// firstX32 begins the numbers of x32, see profile.Decide.
const firstX32 = 1 << 30

// Filter compiles for arch, "amd64" or "arm64".
func Filter(p *profile.Profile, arch string) ([]byte, error) {
	if !slices.Contains(p.Arches, arch) {
		return nil, refusal.Newf("profile: architectures does not list %s", arch)
	}
	programs := [][]bpfvm.Insn{rest(p, arch)}
	targets, constants := map[uint32]int{}, map[profile.Action]int{}
	for _, c := range p.Calls {
		number, ok := sysnum.Number(arch, c.Name)
		if !ok {
			continue // the other architecture's
		}
		if len(c.Rules[0].Args) > 0 {
			targets[number] = len(programs)
			programs = append(programs, body(p, c))
			continue
		}
		action := c.Rules[0].Action
		if constants[action] == 0 {
			constants[action] = len(programs)
			programs = append(programs, []bpfvm.Insn{{Code: bpfvm.RetK, K: action.Return()}})
		}
		targets[number] = constants[action]
	}
	prog, err := Glue(sysnum.AuditArch(arch), targets, programs)
	if err != nil {
		return nil, refusal.Newf("profile: %v", err)
	}
	if err := bpfvm.Check(prog); err != nil {
		return nil, refusal.Newf("profile: the compiled filter: %v", err)
	}
	if err := check(p, arch, prog); err != nil {
		return nil, err
	}
	return bpfvm.Encode(prog), nil
}

// rest is for the numbers that the profile does not name. The accumulator holds
// the number.
func rest(p *profile.Profile, arch string) []bpfvm.Insn {
	other := bpfvm.Insn{Code: bpfvm.RetK, K: p.Default.Return()}
	if arch != "amd64" {
		return []bpfvm.Insn{other}
	}
	return []bpfvm.Insn{
		{Code: bpfvm.JgeK, K: firstX32, JF: 2},
		{Code: bpfvm.JeqK, K: 0xffffffff, JT: 1},
		{Code: bpfvm.RetK, K: profile.Action{Kind: profile.KillProcess}.Return()},
		other,
	}
}

// body decides one call by its arguments: the first rule that matches.
func body(p *profile.Profile, c *profile.Call) []bpfvm.Insn {
	var prog []bpfvm.Insn
	for _, r := range c.Rules {
		prog = append(prog, rule(r)...)
	}
	last := p.Default
	if c.Otherwise != nil {
		last = *c.Otherwise
	}
	return append(prog, bpfvm.Insn{Code: bpfvm.RetK, K: last.Return()})
}

// check runs the filter for every number and on both sides of every condition.
func check(p *profile.Profile, arch string, prog []bpfvm.Insn) error {
	try := func(nr uint32, args [6]uint64) error {
		want := p.Decide(arch, nr, args).Return()
		got, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: sysnum.AuditArch(arch), Args: args})
		if err == nil && got == want {
			return nil
		}
		return fmt.Errorf("the compiled filter answers %#x to call %d with %#x, and the profile %#x: this is a bug of sandglass", got, nr, args, want)
	}
	for nr := range uint32(1 << 10) {
		for _, args := range edges.Calls(p, arch, nr) {
			if err := try(nr, args); err != nil {
				return err
			}
		}
	}
	for _, nr := range []uint32{0xfffe, firstX32 - 1, firstX32, firstX32 | 59, 1 << 31, 0xfffffffe, 0xffffffff} {
		if err := try(nr, [6]uint64{}); err != nil {
			return err
		}
	}
	for nr := range uint32(1 << 10) {
		if got, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: sysnum.AuditArch(arch) ^ 1}); err != nil || got != 0x80000000 {
			return fmt.Errorf("the compiled filter answers %#x to a foreign architecture: this is a bug of sandglass", got)
		}
	}
	return nil
}
