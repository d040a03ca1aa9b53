package profile

import "testing"

func TestArgMatches(t *testing.T) {
	for _, c := range []struct {
		op        Op
		value, v2 uint64
		yes, no   []uint64
	}{
		{NE, 5, 0, []uint64{4, 6, 5 | 1<<32}, []uint64{5}},
		{LT, 5, 0, []uint64{0, 4}, []uint64{5, 6, 1 << 63}},
		{LE, 5, 0, []uint64{0, 5}, []uint64{6, 1 << 63}},
		{EQ, 5, 0, []uint64{5}, []uint64{4, 6, 5 | 1<<32}},
		{GE, 5, 0, []uint64{5, 1 << 63}, []uint64{0, 4}},
		{GT, 5, 0, []uint64{6, 1 << 63}, []uint64{0, 5}},
		{MaskedEQ, 6, 2, []uint64{2, 3, 10, 2 | 1<<40}, []uint64{0, 4, 6}},
	} {
		a := Arg{Op: c.op, Value: c.value, ValueTwo: c.v2}
		for _, v := range c.yes {
			if !a.matches(v) {
				t.Errorf("%+v does not match %d", a, v)
			}
		}
		for _, v := range c.no {
			if a.matches(v) {
				t.Errorf("%+v matches %d", a, v)
			}
		}
	}
}

// TestOverlap: "no" must be true for every value, or a profile with two
// meanings would be accepted.
func TestOverlap(t *testing.T) {
	var args []Arg
	for op := NE; op <= GT; op++ {
		for value := range uint64(6) {
			args = append(args, Arg{Op: op, Value: value})
		}
	}
	for mask := range uint64(8) {
		for value := range uint64(8) {
			if value&^mask == 0 {
				args = append(args, Arg{Op: MaskedEQ, Value: mask, ValueTwo: value})
			}
		}
	}
	for _, x := range args {
		for _, y := range args {
			if overlap(Rule{Args: []Arg{x}}, Rule{Args: []Arg{y}}) {
				continue
			}
			for v := range uint64(16) {
				if x.matches(v) && y.matches(v) {
					t.Errorf("%d satisfies both %+v and %+v", v, x, y)
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		x, y Arg
		want bool
	}{
		{"different argument", Arg{Index: 0, Op: EQ, Value: 1}, Arg{Index: 1, Op: EQ, Value: 2}, true},
		{"two values", Arg{Op: EQ, Value: 1}, Arg{Op: EQ, Value: 2}, false},
		{"value in the range", Arg{Op: EQ, Value: 1}, Arg{Op: LT, Value: 2}, true},
		{"ranges apart", Arg{Op: GT, Value: 1}, Arg{Op: LT, Value: 2}, false},
		{"ranges meet", Arg{Op: GE, Value: 1}, Arg{Op: LE, Value: 1}, true},
		{"masks differ in a bit", Arg{Op: MaskedEQ, Value: 3, ValueTwo: 1}, Arg{Op: MaskedEQ, Value: 7, ValueTwo: 4}, false},
		{"masks of other bits", Arg{Op: MaskedEQ, Value: 3, ValueTwo: 1}, Arg{Op: MaskedEQ, Value: 4, ValueTwo: 4}, true},
	} {
		if got := overlap(Rule{Args: []Arg{c.x}}, Rule{Args: []Arg{c.y}}); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestDecide(t *testing.T) {
	p, err := Parse([]byte(with(`
		{"names": ["read"], "action": "SCMP_ACT_ALLOW"},
		{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}],
		 "otherwise": {"action": "SCMP_ACT_ERRNO", "errnoRet": 97}},
		{"names": ["socketpair"], "action": "SCMP_ACT_LOG", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		number uint32
		arg    uint64
		want   string
	}{
		{"read", 0, 0, "allow"},
		{"write is not listed", 1, 0, "errno 38"},
		{"socket matches", 41, 1, "allow"},
		{"socket otherwise", 41, 2, "errno 97"},
		{"socketpair matches", 53, 1, "log"},
		{"socketpair otherwise is the default", 53, 2, "errno 38"},
		{"unknown", 0xfffe, 0, "errno 38"},
		{"x32", 1 << 30, 0, "kill_process"},
		{"minus one", 0xffffffff, 0, "errno 38"},
	} {
		if got := p.Decide("amd64", c.number, [6]uint64{c.arg}); got.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestReturn(t *testing.T) {
	for _, c := range []struct {
		action Action
		want   uint32
	}{
		{Action{Kind: Allow}, 0x7fff0000},
		{Action{Kind: Log}, 0x7ffc0000},
		{Action{Kind: Errno, Errno: 38}, 0x00050026},
		{Action{Kind: KillProcess}, 0x80000000},
		{Action{}, 0x80000000},
	} {
		if got := c.action.Return(); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.action, got, c.want)
		}
	}
}
