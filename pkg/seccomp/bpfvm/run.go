package bpfvm

import (
	"errors"
	"fmt"
)

// machine is the state of a running program.
type machine struct {
	a, x uint32
	mem  [memWords]uint32
}

// Run gives the program's return value for one call. An unchecked program is
// no danger: what Check would refuse is an error here if it is reached.
func Run(prog []Insn, d *Data) (uint32, error) {
	var m machine
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		if err := checkInsn(in, len(prog)-pc-1); err != nil {
			return 0, fmt.Errorf("instruction %d: %w", pc, err)
		}
		switch in.Code & 0x07 {
		case 0x06:
			if in.Code == RetA {
				return m.a, nil
			}
			return in.K, nil
		case 0x05:
			pc += m.jump(in)
		case 0x04:
			if in.Code == DivX && m.x == 0 {
				return 0, nil // as the kernel: the program ends with 0, KILL_THREAD
			}
			m.a = alu(in, m.a, m.x)
		default:
			m.move(in, d)
		}
	}
	return 0, errors.New("the program ends without a return")
}

// move runs loads, stores and register moves.
func (m *machine) move(in Insn, d *Data) {
	switch in.Code {
	case LdAbs:
		m.a = d.word(in.K)
	case LdLen:
		m.a = DataSize
	case LdImm:
		m.a = in.K
	case LdMem:
		m.a = m.mem[in.K]
	case LdxLen:
		m.x = DataSize
	case LdxImm:
		m.x = in.K
	case LdxMem:
		m.x = m.mem[in.K]
	case St:
		m.mem[in.K] = m.a
	case Stx:
		m.mem[in.K] = m.x
	case Tax:
		m.x = m.a
	case Txa:
		m.a = m.x
	}
}

// jump is the number of instructions to skip.
func (m *machine) jump(in Insn) int {
	if in.Code == Ja {
		return int(in.K)
	}
	operand := in.K
	if in.Code&0x08 != 0 {
		operand = m.x
	}
	var taken bool
	switch in.Code &^ 0x08 {
	case JeqK:
		taken = m.a == operand
	case JgtK:
		taken = m.a > operand
	case JgeK:
		taken = m.a >= operand
	case JsetK:
		taken = m.a&operand != 0
	}
	if taken {
		return int(in.JT)
	}
	return int(in.JF)
}

// alu is the new accumulator. Shifts by the index register use its low five
// bits, as the kernel's 32-bit shifts do.
func alu(in Insn, a, x uint32) uint32 {
	operand := in.K
	if in.Code&0x08 != 0 {
		operand = x
	}
	switch in.Code &^ 0x08 {
	case AddK:
		return a + operand
	case SubK:
		return a - operand
	case MulK:
		return a * operand
	case DivK:
		return a / operand
	case OrK:
		return a | operand
	case AndK:
		return a & operand
	case LshK:
		return a << (operand & 31)
	case RshK:
		return a >> (operand & 31)
	case XorK:
		return a ^ operand
	}
	return -a // Neg
}
