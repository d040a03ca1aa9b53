package compile

import (
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/profile"
)

// Where a comparison's jumps lead, until rule knows the distances.
const (
	next = iota // the instruction after it
	pass        // the condition holds: the next condition
	fail        // it does not: the next rule
)

// step is an instruction whose jumps are still words.
type step struct {
	in     bpfvm.Insn
	jt, jf int
}

// rule falls through to its end when a condition fails. It is far shorter than
// the 255 instructions that a jump reaches: six conditions of six at most.
func rule(r profile.Rule) []bpfvm.Insn {
	var prog []step
	var ends []int // of each condition
	for _, a := range r.Args {
		prog = append(prog, condition(a)...)
		ends = append(ends, len(prog))
	}
	end := len(prog) + 1 // behind the rule's return
	list := make([]bpfvm.Insn, 0, end)
	for i, s := range prog {
		for ends[0] <= i {
			ends = ends[1:]
		}
		to := func(where int) uint8 {
			switch where {
			case pass:
				return uint8(ends[0] - i - 1)
			case fail:
				return uint8(end - i - 1)
			}
			return 0
		}
		s.in.JT, s.in.JF = to(s.jt), to(s.jf)
		list = append(list, s.in)
	}
	return append(list, bpfvm.Insn{Code: bpfvm.RetK, K: r.Action.Return()})
}

// condition compares one argument, as two words of 32 bits: the high one first.
func condition(a profile.Arg) []step {
	low, high := 16+8*uint32(a.Index), 20+8*uint32(a.Index)
	vlow, vhigh := uint32(a.Value), uint32(a.Value>>32)
	load := func(at uint32) step { return step{in: bpfvm.Insn{Code: bpfvm.LdAbs, K: at}} }
	jump := func(code uint16, k uint32, jt, jf int) step {
		return step{in: bpfvm.Insn{Code: code, K: k}, jt: jt, jf: jf}
	}
	above := func(yes, no int, code uint16) []step { // code decides on the low word
		return []step{load(high), jump(bpfvm.JgtK, vhigh, yes, next), jump(bpfvm.JeqK, vhigh, next, no), load(low), jump(code, vlow, yes, no)}
	}
	switch a.Op {
	case profile.EQ:
		return []step{load(high), jump(bpfvm.JeqK, vhigh, next, fail), load(low), jump(bpfvm.JeqK, vlow, pass, fail)}
	case profile.NE:
		return []step{load(high), jump(bpfvm.JeqK, vhigh, next, pass), load(low), jump(bpfvm.JeqK, vlow, fail, pass)}
	case profile.GT:
		return above(pass, fail, bpfvm.JgtK)
	case profile.GE:
		return above(pass, fail, bpfvm.JgeK)
	case profile.LE:
		return above(fail, pass, bpfvm.JgtK)
	case profile.LT:
		return above(fail, pass, bpfvm.JgeK)
	}
	var prog []step // MaskedEQ; a mask of zero masks away what is compared
	for _, half := range []struct{ at, mask, want uint32 }{
		{high, vhigh, uint32(a.ValueTwo >> 32)}, {low, vlow, uint32(a.ValueTwo)},
	} {
		if half.mask != 0 {
			prog = append(prog, load(half.at), step{in: bpfvm.Insn{Code: bpfvm.AndK, K: half.mask}}, jump(bpfvm.JeqK, half.want, next, fail))
		}
	}
	return prog
}
