package main

import (
	"fmt"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/compile"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
)

// call is one system call with its rules, by number.
type call struct {
	name   string
	number uint32
	rules  []profile.Rule
}

// compileBody makes a complete program of calls with a default action: it
// checks the architecture itself, and kills on a foreign one.
type compileBody func(arch string, fallback profile.Action, calls []call) ([]bpfvm.Insn, error)

// libseccomp has limits that this file works around. It knows one default
// action for a whole filter, but a call with conditions wants its own answer
// when none matches. A stable distribution's libseccomp does not know the
// newest calls. And it compares each allowed number, where ranges of them do:
// every run pays twice for the filter's length. So a filter is put together
// from several complete programs:
//
//	dispatch    by number alone: where does this call's answer come from?
//	main        libseccomp: calls with conditions, default action of the profile
//	others      libseccomp: the calls with the same "otherwise", that as default
//	returns     one instruction: calls without conditions
//
// This is right if each part is, because every part begins by loading its own
// accumulator, uses nothing else (checkSelfContained) and jumps only within
// itself, so it decides as if it were alone; and dispatch only selects.
type part struct {
	fallback profile.Action
	calls    []call
	constant bool // a part of the third kind
}

// compileProfile makes the filter for arch.
func compileProfile(p *profile.Profile, arch string, body compileBody) ([]byte, error) {
	if !slices.Contains(p.Arches, arch) {
		return nil, refusal.Newf("profile: architectures does not list %s", arch)
	}
	parts, err := plan(p, arch, knownToLibseccomp)
	if err != nil {
		return nil, err
	}
	programs := make([][]bpfvm.Insn, len(parts))
	targets := map[uint32]int{}
	for i, part := range parts {
		if programs[i], err = part.program(arch, body); err != nil {
			return nil, err
		}
		if i == 0 {
			continue // main needs no dispatch, it takes what is left
		}
		for _, c := range part.calls {
			targets[c.number] = i
		}
	}
	prog, err := compile.Glue(sysnum.AuditArch(arch), targets, programs)
	if err != nil {
		return nil, err
	}
	if err := bpfvm.Check(prog); err != nil {
		return nil, fmt.Errorf("compiled program: %w", err)
	}
	return bpfvm.Encode(prog), nil
}

// plan sorts the profile's calls into parts. The first is main.
func plan(p *profile.Profile, arch string, known func(arch, name string) (bool, error)) ([]part, error) {
	parts := []part{{fallback: p.Default}}
	add := func(c call, fallback profile.Action, constant bool) {
		i := slices.IndexFunc(parts, func(x part) bool { return x.fallback == fallback && x.constant == constant })
		if i < 0 {
			i = len(parts)
			parts = append(parts, part{fallback: fallback, constant: constant})
		}
		parts[i].calls = append(parts[i].calls, c)
	}
	for _, pc := range p.Calls {
		number, ok := sysnum.Number(arch, pc.Name)
		if !ok {
			continue // the other architecture's
		}
		c := call{name: pc.Name, number: number, rules: pc.Rules}
		isKnown, err := known(arch, pc.Name)
		switch {
		case err != nil:
			return nil, err
		case len(c.rules[0].Args) == 0:
			if c.rules[0].Action != p.Default { // else main's default does it
				add(c, c.rules[0].Action, true)
			}
		case isKnown && pc.Otherwise != nil:
			add(c, *pc.Otherwise, false)
		case isKnown:
			add(c, p.Default, false)
		default:
			return nil, refusal.Newf("profile: this libseccomp does not know %s, so it cannot have args", pc.Name)
		}
	}
	for _, x := range parts {
		slices.SortFunc(x.calls, func(a, b call) int { return int(a.number) - int(b.number) })
	}
	return parts, nil
}

func (x part) program(arch string, body compileBody) ([]bpfvm.Insn, error) {
	if x.constant {
		return []bpfvm.Insn{{Code: bpfvm.RetK, K: x.fallback.Return()}}, nil
	}
	prog, err := body(arch, x.fallback, x.calls)
	if err != nil {
		return nil, err
	}
	if err := checkSelfContained(prog, sysnum.AuditArch(arch)); err != nil {
		return nil, fmt.Errorf("libseccomp's program: %w", err)
	}
	return prog, nil
}

// checkSelfContained holds libseccomp's output to what gluing relies on: it
// begins with the architecture check, and knows no state but the accumulator.
func checkSelfContained(prog []bpfvm.Insn, token uint32) error {
	if err := bpfvm.Check(prog); err != nil {
		return err
	}
	load := bpfvm.Insn{Code: bpfvm.LdAbs, K: 4}
	if len(prog) < 2 || prog[0] != load || prog[1].Code != bpfvm.JeqK || prog[1].K != token {
		return fmt.Errorf("does not begin with the check of architecture %#x", token)
	}
	for pc, in := range prog {
		switch in.Code {
		case bpfvm.LdAbs, bpfvm.AndK, bpfvm.Ja, bpfvm.JeqK, bpfvm.JgtK, bpfvm.JgeK, bpfvm.JsetK, bpfvm.RetK:
		default:
			return fmt.Errorf("instruction %d has unexpected code %#x", pc, in.Code)
		}
	}
	return nil
}
