package profile

import (
	"fmt"
	"slices"

	"sandglass/internal/refusal"
)

// addGroup adds the rule of one group to each of its names.
func (p *Profile) addGroup(number int, g jsonGroup) error {
	where := fmt.Sprintf("profile: group %d", number)
	if len(g.Names) == 0 {
		return refusal.Newf("%s: names is missing or empty", where)
	}
	act, err := action(g.Action, g.ErrnoRet, where)
	if err != nil {
		return err
	}
	args, err := arguments(where, g.Args)
	if err != nil {
		return err
	}
	var otherwise *Action
	if g.Otherwise != nil {
		if len(args) == 0 {
			return refusal.Newf("%s: otherwise without args can never apply", where)
		}
		other, err := action(g.Otherwise.Action, g.Otherwise.ErrnoRet, where+": otherwise")
		if err != nil {
			return err
		}
		otherwise = &other
	}
	for _, name := range g.Names {
		if !p.known(name) {
			return refusal.Newf("%s: no architecture of the profile has a system call %q", where, name)
		}
		if err := p.addRule(where, name, Rule{Args: args, Action: act}, otherwise); err != nil {
			return err
		}
	}
	return nil
}

func (p *Profile) addRule(where, name string, rule Rule, otherwise *Action) error {
	call := p.Call(name)
	if call == nil {
		p.Calls = append(p.Calls, &Call{Name: name, Rules: []Rule{rule}, Otherwise: otherwise})
		return nil
	}
	if len(rule.Args) == 0 || len(call.Rules[0].Args) == 0 {
		return refusal.Newf("%s: %s is in another group already, and one of the two has no args", where, name)
	}
	for _, other := range call.Rules {
		if slices.Equal(other.Args, rule.Args) {
			return refusal.Newf("%s: %s with the same args is in another group already", where, name)
		}
		if other.Action != rule.Action && overlap(other, rule) {
			return refusal.Newf("%s: %s with these args could also match another group with action %s", where, name, other.Action)
		}
	}
	if otherwise != nil && call.Otherwise != nil {
		return refusal.Newf("%s: otherwise of %s is in another group already", where, name)
	}
	if otherwise != nil {
		call.Otherwise = otherwise
	}
	call.Rules = append(call.Rules, rule)
	return nil
}

// arguments reads the conditions of a group, sorted by argument.
func arguments(where string, in []jsonArg) ([]Arg, error) {
	var args []Arg
	for i, a := range in {
		at := fmt.Sprintf("%s: args %d", where, i+1)
		op, ok := operators()[a.Op]
		switch {
		case !ok:
			return nil, refusal.Newf("%s: operator %q is not supported", at, a.Op)
		case a.Index == nil || *a.Index > 5:
			return nil, refusal.Newf("%s: index must be 0 to 5", at)
		case a.Value == nil:
			return nil, refusal.Newf("%s: value is missing", at)
		case (op == MaskedEQ) != (a.ValueTwo != nil):
			return nil, refusal.Newf("%s: valueTwo belongs to SCMP_CMP_MASKED_EQ, and to that only", at)
		case slices.ContainsFunc(args, func(b Arg) bool { return b.Index == *a.Index }):
			// Runtimes turn this into "or", readers expect "and".
			return nil, refusal.Newf("%s: argument %d twice in one group", at, *a.Index)
		}
		arg := Arg{Index: *a.Index, Op: op, Value: *a.Value}
		if op == MaskedEQ {
			arg.ValueTwo = *a.ValueTwo
			if arg.ValueTwo&^arg.Value != 0 {
				return nil, refusal.Newf("%s: valueTwo has bits outside the mask, this never matches", at)
			}
		}
		args = append(args, arg)
	}
	slices.SortFunc(args, func(a, b Arg) int { return int(a.Index) - int(b.Index) })
	return args, nil
}
