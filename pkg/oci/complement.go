package oci

import (
	"errors"
	"math/bits"

	"sandglass/pkg/seccomp/profile"
)

// cube is a set of calls: those whose arguments have these bits. The key is the
// argument's index.
type cube [6]struct{ mask, value uint64 }

var errNoCube = errors.New("a condition other than a masked equality has no complement here")

// complement is every call that none of the rules matches, as disjoint sets of
// masked equalities. The kernel looks at 32 bits of an ioctl's number, so rules
// mask them; and neither "not equal" nor a range, which runtimes compare with all
// 64, says the opposite of that (CVE-2019-10063 was such a gap).
func complement(rules []profile.Rule) ([][]profile.Arg, error) {
	rest := []cube{{}}
	for _, r := range rules {
		taken, err := cubeOf(r)
		if err != nil {
			return nil, err
		}
		var next []cube
		for _, c := range rest {
			next = append(next, c.without(taken)...)
		}
		rest = next
	}
	var out [][]profile.Arg
	for _, c := range rest {
		out = append(out, c.args())
	}
	return out, nil
}

func cubeOf(r profile.Rule) (cube, error) {
	var c cube
	for _, a := range r.Args {
		switch a.Op {
		case profile.MaskedEQ:
			c[a.Index].mask, c[a.Index].value = a.Value, a.ValueTwo
		case profile.EQ:
			c[a.Index].mask, c[a.Index].value = ^uint64(0), a.Value
		default:
			return c, errNoCube
		}
	}
	return c, nil
}

// without cuts a cube out of c: for each bit that the other fixes and c leaves
// open, the half of c that differs there, and agrees on all bits before.
func (c cube) without(other cube) []cube {
	for i := range c {
		if (c[i].value^other[i].value)&c[i].mask&other[i].mask != 0 {
			return []cube{c} // they have nothing in common
		}
	}
	var out []cube
	for i := range c {
		for open := other[i].mask &^ c[i].mask; open != 0; {
			bit := uint64(1) << (bits.Len64(open) - 1)
			half := c
			half[i].mask |= bit
			half[i].value |= bit &^ other[i].value
			out = append(out, half)
			c[i].mask |= bit
			c[i].value |= bit & other[i].value
			open &^= bit
		}
	}
	return out
}

func (c cube) args() []profile.Arg {
	var args []profile.Arg
	for i, x := range c {
		if x.mask != 0 {
			args = append(args, profile.Arg{Index: uint(i), Op: profile.MaskedEQ, Value: x.mask, ValueTwo: x.value})
		}
	}
	return args
}
