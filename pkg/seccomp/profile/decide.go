package profile

import "sandglass/pkg/seccomp/sysnum"

// firstX32 begins the numbers of x32 on amd64, see seccomp(2); no other call is
// above it. All ones is not one of them: tracers write it over the number to
// skip a call.
const firstX32 = 1 << 30

// Decide says what the profile does with a call on arch ("amd64", "arm64"). It
// is written for plainness, not speed, and shares nothing with the compiler.
func (p *Profile) Decide(arch string, number uint32, args [6]uint64) Action {
	if arch == "amd64" && number >= firstX32 && number != 0xffffffff {
		return Action{Kind: KillProcess}
	}
	name, ok := sysnum.Name(arch, number)
	if !ok {
		return p.Default
	}
	call := p.Call(name)
	if call == nil {
		return p.Default
	}
	for _, r := range call.Rules {
		if r.matches(args) {
			return r.Action
		}
	}
	if call.Otherwise != nil {
		return *call.Otherwise
	}
	return p.Default
}

func (r Rule) matches(args [6]uint64) bool {
	for _, a := range r.Args {
		if !a.matches(args[a.Index]) {
			return false
		}
	}
	return true
}

func (a Arg) matches(v uint64) bool {
	switch a.Op {
	case NE:
		return v != a.Value
	case LT:
		return v < a.Value
	case LE:
		return v <= a.Value
	case EQ:
		return v == a.Value
	case GE:
		return v >= a.Value
	case GT:
		return v > a.Value
	}
	return v&a.Value == a.ValueTwo
}

// overlap says whether one call could match both rules. It may say yes where
// the answer is no, never the reverse.
func overlap(a, b Rule) bool {
	for _, x := range a.Args {
		for _, y := range b.Args {
			if x.Index == y.Index && disjoint(x, y) {
				return false
			}
		}
	}
	return true
}

// disjoint says that no value satisfies both, when that is easy to see.
func disjoint(x, y Arg) bool {
	if x.Op == EQ {
		return !y.matches(x.Value)
	}
	if y.Op == EQ {
		return !x.matches(y.Value)
	}
	if x.Op == MaskedEQ && y.Op == MaskedEQ {
		return x.Value&y.Value&(x.ValueTwo^y.ValueTwo) != 0
	}
	xlow, xhigh, xok := x.interval()
	ylow, yhigh, yok := y.interval()
	return xok && yok && (xhigh < ylow || yhigh < xlow)
}

// interval is the range of values that satisfy an order operator.
func (a Arg) interval() (low, high uint64, ok bool) {
	const top = ^uint64(0)
	switch a.Op {
	case LT:
		return 0, a.Value - 1, a.Value > 0
	case LE:
		return 0, a.Value, true
	case GE:
		return a.Value, top, true
	case GT:
		return a.Value + 1, top, a.Value < top
	}
	return 0, 0, false
}
