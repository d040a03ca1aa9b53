package bpfvm

import (
	"strings"
	"testing"
)

var ret = Insn{Code: RetK, K: 0x7fff0000}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"empty", nil, "empty program"},
		{"truncated", make([]byte, 15), "15 bytes are not a whole number of 8-byte instructions"},
		{"too long", make([]byte, (MaxInsns+1)*InsnSize), "4097 instructions, the kernel takes at most 4096"},
	} {
		if _, err := Decode(c.raw); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestEncodeIsTheReverseOfDecode(t *testing.T) {
	raw := []byte{0x15, 0, 1, 2, 0x3e, 0, 0, 0xc0, 6, 0, 0, 0, 0, 0, 0xff, 0x7f}
	prog, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Insn{Code: JeqK, JT: 1, JF: 2, K: 0xc000003e}); prog[0] != want {
		t.Errorf("got %+v, want %+v", prog[0], want)
	}
	if got := Encode(prog); string(got) != string(raw) {
		t.Errorf("got % x, want % x", got, raw)
	}
}

// checkCases are programs and the error of Check; "" is none. The kernel test
// runs them as well.
var checkCases = []struct {
	name string
	prog []Insn
	want string
}{
	{"allow all", []Insn{ret}, ""},
	{"no return", []Insn{{Code: LdImm}}, "the last instruction does not return"},
	{"empty", nil, "empty program"},
	{"unknown code", []Insn{{Code: 0xff}, ret}, "instruction 0: code 0xff is not allowed in a seccomp filter"},
	{"code above a byte", []Insn{{Code: 0x100 | RetK}, ret}, "instruction 0: code 0x106 is not allowed in a seccomp filter"},
	{"modulo", []Insn{{Code: 0x94, K: 3}, ret}, "instruction 0: code 0x94 is not allowed in a seccomp filter"},
	{"half word load", []Insn{{Code: 0x28}, ret}, "instruction 0: code 0x28 is not allowed in a seccomp filter"},
	{"indirect load", []Insn{{Code: 0x40}, ret}, "instruction 0: code 0x40 is not allowed in a seccomp filter"},
	{"return x", []Insn{{Code: 0x0e}, ret}, "instruction 0: code 0xe is not allowed in a seccomp filter"},
	{"load last word", []Insn{{Code: LdAbs, K: 60}, ret}, ""},
	{"load behind data", []Insn{{Code: LdAbs, K: 64}, ret}, "instruction 0: load at offset 64 is not a word of seccomp_data"},
	{"load unaligned", []Insn{{Code: LdAbs, K: 2}, ret}, "instruction 0: load at offset 2 is not a word of seccomp_data"},
	{"load negative", []Insn{{Code: LdAbs, K: 0xfffff000}, ret}, "instruction 0: load at offset 4294963200 is not a word of seccomp_data"},
	{"division by zero", []Insn{{Code: DivK}, ret}, "instruction 0: division by zero"},
	{"shift 31", []Insn{{Code: LshK, K: 31}, ret}, ""},
	{"shift 32", []Insn{{Code: RshK, K: 32}, ret}, "instruction 0: shift by 32"},
	{"jump to last", []Insn{{Code: Ja, K: 1}, ret, ret}, ""},
	{"jump behind end", []Insn{{Code: Ja, K: 2}, ret, ret}, "instruction 0: jump out of the program"},
	{"jump back", []Insn{{Code: Ja, K: 0xffffffff}, ret}, "instruction 0: jump out of the program"},
	{"true branch out", []Insn{{Code: JeqK, JT: 1}, ret}, "instruction 0: jump out of the program"},
	{"false branch out", []Insn{{Code: JsetX, JF: 255}, ret}, "instruction 0: jump out of the program"},
	{"scratch written", []Insn{{Code: St, K: 15}, {Code: LdMem, K: 15}, ret}, ""},
	{"scratch number", []Insn{{Code: St, K: 16}, ret}, "instruction 0: scratch word 16, there are 16"},
	{"scratch not written", []Insn{{Code: LdxMem, K: 1}, ret}, "instruction 0: scratch word 1 is read before it is written"},
	{"scratch written on one path", []Insn{{Code: JeqK, JT: 1}, {Code: Stx, K: 2}, {Code: LdMem, K: 2}, ret},
		"instruction 2: scratch word 2 is read before it is written"},
	{"scratch jumped over", []Insn{{Code: Ja, K: 1}, {Code: St, K: 2}, {Code: LdMem, K: 2}, ret},
		"instruction 2: scratch word 2 is read before it is written"},
	{"return a", []Insn{{Code: LdAbs}, {Code: RetA}}, ""},
	{"longest", longest(MaxInsns), ""},
	{"too long", longest(MaxInsns + 1), "4097 instructions, the kernel takes at most 4096"},
}

func longest(n int) []Insn {
	prog := make([]Insn, n)
	for i := range prog {
		prog[i] = ret
	}
	return prog
}

func TestCheck(t *testing.T) {
	for _, c := range checkCases {
		err := Check(c.prog)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
