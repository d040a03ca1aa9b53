package profile

import (
	"reflect"
	"slices"
	"strings"

	"sandglass/internal/refusal"
)

// Merge is a profile that allows what either allows. Where both have conditions
// on a call they must agree on what becomes of the rest.
func Merge(a, b *Profile) (*Profile, error) {
	if a.Default != b.Default {
		return nil, refusal.Newf("profiles with the default actions %s and %s cannot be merged", a.Default, b.Default)
	}
	x, y := slices.Sorted(slices.Values(a.Arches)), slices.Sorted(slices.Values(b.Arches))
	if !slices.Equal(x, y) {
		return nil, refusal.Newf("a profile for %s and one for %s cannot be merged", strings.Join(x, ", "), strings.Join(y, ", "))
	}
	p := &Profile{Default: a.Default, Arches: x}
	for _, c := range a.Calls {
		merged, err := mergeCall(c, b.Call(c.Name))
		if err != nil {
			return nil, err
		}
		p.Calls = append(p.Calls, merged)
	}
	for _, c := range b.Calls {
		if a.Call(c.Name) == nil {
			p.Calls = append(p.Calls, c)
		}
	}
	slices.SortFunc(p.Calls, func(a, b *Call) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

func mergeCall(a, b *Call) (*Call, error) {
	switch {
	case b == nil, allows(a), refuses(b):
		return a, nil
	case allows(b), refuses(a):
		return b, nil
	}
	if !reflect.DeepEqual(a.Otherwise, b.Otherwise) {
		return nil, refusal.Newf("%s has another rest in either profile, so they cannot be merged", a.Name)
	}
	c := &Call{Name: a.Name, Rules: slices.Clone(a.Rules), Otherwise: a.Otherwise}
	for _, r := range b.Rules {
		if slices.ContainsFunc(a.Rules, func(x Rule) bool { return reflect.DeepEqual(x, r) }) {
			continue
		}
		for _, x := range a.Rules {
			if x.Action != r.Action && overlap(x, r) {
				return nil, refusal.Newf("rules of %s with different actions overlap, so the profiles cannot be merged", a.Name)
			}
		}
		c.Rules = append(c.Rules, r)
	}
	return c, nil
}

// allows and refuses: whatever the arguments.
func allows(c *Call) bool {
	return len(c.Rules[0].Args) == 0 && (c.Rules[0].Action.Kind == Allow || c.Rules[0].Action.Kind == Log)
}

func refuses(c *Call) bool { return len(c.Rules[0].Args) == 0 && !allows(c) }

// Diff has a line for each call that the two profiles decide differently, in the
// order of names: what a says of it, and what b says.
func Diff(a, b *Profile) []string {
	var names []string
	for _, c := range slices.Concat(a.Calls, b.Calls) {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	var lines []string
	if a.Default != b.Default {
		lines = append(lines, "any other call: "+a.Default.String()+" -> "+b.Default.String())
	}
	for _, name := range slices.Compact(names) {
		x, y := a.says(name), b.says(name)
		if x != y {
			lines = append(lines, name+": "+x+" -> "+y)
		}
	}
	return lines
}

// says is all about one call on a line.
func (p *Profile) says(name string) string {
	c := p.Call(name)
	if c == nil {
		return p.Default.String()
	}
	if len(c.Rules[0].Args) == 0 {
		return c.Rules[0].Action.String()
	}
	var rules []string
	for _, r := range c.Rules {
		var args []string
		for _, a := range r.Args {
			args = append(args, a.text())
		}
		rules = append(rules, r.Action.String()+" if "+strings.Join(args, " and "))
	}
	slices.Sort(rules)
	rest := p.Default
	if c.Otherwise != nil {
		rest = *c.Otherwise
	}
	return strings.Join(rules, ", ") + ", else " + rest.String()
}
