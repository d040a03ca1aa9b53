// Package edges gives the calls on which a filter and its profile could differ:
// argument values on and beside the edge of every condition.
package edges

import (
	"slices"

	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
)

// Calls are the argument lists to try for one call: the product of the
// interesting values of each argument that a rule looks at. What no rule looks
// at is garbage.
func Calls(p *profile.Profile, arch string, nr uint32) [][6]uint64 {
	lists := [][6]uint64{{0xdead, 0xbeef, 0xfeed, 0xcafe, 0xf00d, 0xface}}
	name, _ := sysnum.Name(arch, nr)
	call := p.Call(name)
	if call == nil {
		return append(lists, [6]uint64{}, [6]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)})
	}
	for index := range uint(6) {
		values := argumentValues(call, index)
		if len(values) == 0 {
			continue
		}
		var product [][6]uint64
		for _, list := range lists {
			for _, v := range values {
				list[index] = v
				product = append(product, list)
			}
		}
		lists = product
	}
	return lists
}

func argumentValues(call *profile.Call, index uint) []uint64 {
	var values []uint64
	for _, r := range call.Rules {
		for _, a := range r.Args {
			if a.Index != index {
				continue
			}
			v := a.Value
			if a.Op == profile.MaskedEQ {
				v = a.ValueTwo
			}
			values = append(values, v, v+1, v-1, v|1<<32, v|0xffffffff<<32, v^1<<31, v|^a.Value)
			values = append(values, flips(a, v)...)
		}
	}
	if len(values) > 0 {
		values = append(values, 0, ^uint64(0), 1<<63)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// flips changes single bits within the mask.
func flips(a profile.Arg, v uint64) []uint64 {
	var values []uint64
	for bit := range 64 {
		inMask := a.Op != profile.MaskedEQ || a.Value>>bit&1 == 1
		wide := a.Op != profile.MaskedEQ || a.Value == 0xffffffff
		if inMask && (!wide || slices.Contains([]int{1, 3, 4, 16, 30}, bit)) {
			values = append(values, v^1<<bit)
		}
	}
	return values
}
