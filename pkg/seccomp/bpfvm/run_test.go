package bpfvm

import "testing"

var data = &Data{
	Nr: 0x11111111, Arch: 0xc000003e, IP: 0x2222222233333333,
	Args: [6]uint64{0x0000000100000002, 3, 4, 5, 6, 0x7777777788888888},
}

// twoOperands computes a op x with a = 100 and x = operand, or the constant.
func twoOperands(code uint16, operand uint32) []Insn {
	return []Insn{{Code: LdxImm, K: operand}, {Code: LdImm, K: 100}, {Code: code, K: operand}, {Code: RetA}}
}

func TestRun(t *testing.T) {
	branch := func(code uint16, operand uint32) []Insn {
		return []Insn{{Code: LdxImm, K: operand}, {Code: LdImm, K: 100},
			{Code: code, K: operand, JT: 1}, {Code: RetK, K: 0}, {Code: RetK, K: 1}}
	}
	for _, c := range []struct {
		name string
		prog []Insn
		want uint32
	}{
		{"number", []Insn{{Code: LdAbs, K: 0}, {Code: RetA}}, 0x11111111},
		{"arch", []Insn{{Code: LdAbs, K: 4}, {Code: RetA}}, 0xc000003e},
		{"ip low", []Insn{{Code: LdAbs, K: 8}, {Code: RetA}}, 0x33333333},
		{"ip high", []Insn{{Code: LdAbs, K: 12}, {Code: RetA}}, 0x22222222},
		{"first argument low", []Insn{{Code: LdAbs, K: 16}, {Code: RetA}}, 2},
		{"first argument high", []Insn{{Code: LdAbs, K: 20}, {Code: RetA}}, 1},
		{"last argument low", []Insn{{Code: LdAbs, K: 56}, {Code: RetA}}, 0x88888888},
		{"last argument high", []Insn{{Code: LdAbs, K: 60}, {Code: RetA}}, 0x77777777},
		{"length", []Insn{{Code: LdLen}, {Code: RetA}}, 64},
		{"length in x", []Insn{{Code: LdxLen}, {Code: Txa}, {Code: RetA}}, 64},
		{"scratch", []Insn{{Code: LdImm, K: 9}, {Code: Tax}, {Code: Stx, K: 3}, {Code: LdImm}, {Code: LdMem, K: 3}, {Code: RetA}}, 9},
		{"scratch to x", []Insn{{Code: LdImm, K: 9}, {Code: St, K: 3}, {Code: LdxMem, K: 3}, {Code: Txa}, {Code: RetA}}, 9},
		{"add", twoOperands(AddK, 0xffffffff), 99},
		{"add x", twoOperands(AddX, 7), 107},
		{"sub", twoOperands(SubK, 101), 0xffffffff},
		{"sub x", twoOperands(SubX, 1), 99},
		{"mul", twoOperands(MulK, 3), 300},
		{"mul x", twoOperands(MulX, 1<<31), 0},
		{"div", twoOperands(DivK, 7), 14},
		{"div x", twoOperands(DivX, 9), 11},
		{"div by zero ends with kill", twoOperands(DivX, 0), 0},
		{"or", twoOperands(OrK, 3), 103},
		{"and", twoOperands(AndX, 6), 4},
		{"xor", twoOperands(XorK, 0xffffffff), 0xffffff9b},
		{"shift left", twoOperands(LshK, 4), 1600},
		{"shift left by x is modulo 32", twoOperands(LshX, 33), 200},
		{"shift right", twoOperands(RshX, 2), 25},
		{"negate", twoOperands(Neg, 0), 0xffffff9c},
		{"equal", branch(JeqK, 100), 1},
		{"not equal", branch(JeqX, 99), 0},
		{"greater", branch(JgtK, 99), 1},
		{"not greater", branch(JgtX, 100), 0},
		{"greater as unsigned", branch(JgtK, 0x80000000), 0},
		{"greater or equal", branch(JgeX, 100), 1},
		{"not greater or equal", branch(JgeK, 101), 0},
		{"bit set", branch(JsetK, 4), 1},
		{"bit not set", branch(JsetX, 3), 0},
		{"jump", []Insn{{Code: Ja, K: 1}, {Code: RetK, K: 1}, {Code: RetK, K: 2}}, 2},
	} {
		got, err := Run(c.prog, data)
		if err != nil || got != c.want {
			t.Errorf("%s: got %#x, %v, want %#x", c.name, got, err, c.want)
		}
	}
}

func TestRunOfAnUncheckedProgramIsAnError(t *testing.T) {
	for _, c := range []struct {
		name string
		prog []Insn
		want string
	}{
		{"empty", nil, "the program ends without a return"},
		{"no return", []Insn{{Code: LdImm}}, "the program ends without a return"},
		{"jump out", []Insn{{Code: Ja, K: 9}, ret}, "instruction 0: jump out of the program"},
		{"unknown", []Insn{{Code: 0x30}, ret}, "instruction 0: code 0x30 is not allowed in a seccomp filter"},
		{"scratch", []Insn{{Code: LdMem, K: 400}, ret}, "instruction 0: scratch word 400, there are 16"},
	} {
		if _, err := Run(c.prog, data); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzRun: nothing makes the interpreter panic, and a program that passed
// Check always ends with a value.
func FuzzRun(f *testing.F) {
	for _, c := range checkCases {
		if len(c.prog) < 100 {
			f.Add(Encode(c.prog), uint32(1), uint64(2))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, nr uint32, arg uint64) {
		prog, err := Decode(raw)
		if err != nil {
			return
		}
		checked := Check(prog)
		_, err = Run(prog, &Data{Nr: nr, Arch: 0xc000003e, Args: [6]uint64{arg, arg}})
		if checked == nil && err != nil {
			t.Errorf("passed Check, but: %v", err)
		}
	})
}
