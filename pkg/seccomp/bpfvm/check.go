package bpfvm

import (
	"errors"
	"fmt"
)

const memWords = 16 // BPF_MEMWORDS

// Check accepts exactly what the kernel accepts for seccomp(2): the rules are
// those of bpf_check_classic, check_load_and_stores (net/core/filter.c) and
// seccomp_check_filter (kernel/seccomp.c). A program that passes ends with a
// return on every path, since jumps only go forward.
func Check(prog []Insn) error {
	switch {
	case len(prog) == 0:
		return errors.New("empty program")
	case len(prog) > MaxInsns:
		return fmt.Errorf("%d instructions, the kernel takes at most %d", len(prog), MaxInsns)
	}
	for pc, in := range prog {
		if err := checkInsn(in, len(prog)-pc-1); err != nil {
			return fmt.Errorf("instruction %d: %w", pc, err)
		}
	}
	if last := prog[len(prog)-1].Code; last != RetK && last != RetA {
		return errors.New("the last instruction does not return")
	}
	return checkScratch(prog)
}

// checkInsn checks one instruction that has left more behind it.
func checkInsn(in Insn, left int) error {
	switch in.Code {
	case LdAbs:
		if in.K >= DataSize || in.K%4 != 0 {
			return fmt.Errorf("load at offset %d is not a word of seccomp_data", in.K)
		}
	case DivK:
		if in.K == 0 {
			return errors.New("division by zero")
		}
	case LshK, RshK:
		if in.K >= 32 {
			return fmt.Errorf("shift by %d", in.K)
		}
	case LdMem, LdxMem, St, Stx:
		if in.K >= memWords {
			return fmt.Errorf("scratch word %d, there are %d", in.K, memWords)
		}
	case Ja:
		if uint64(in.K) >= uint64(left) {
			return errors.New("jump out of the program")
		}
	case JeqK, JeqX, JgtK, JgtX, JgeK, JgeX, JsetK, JsetX:
		if int(in.JT) >= left || int(in.JF) >= left {
			return errors.New("jump out of the program")
		}
	case LdLen, LdImm, LdxLen, LdxImm, AddK, AddX, SubK, SubX, MulK, MulX, DivX,
		OrK, OrX, AndK, AndX, LshX, RshX, XorK, XorX, Neg, RetK, RetA, Tax, Txa:
	default:
		return fmt.Errorf("code %#x is not allowed in a seccomp filter", in.Code)
	}
	return nil
}

// checkScratch refuses reading a scratch word that some path has not written:
// it would hold bytes of the kernel's stack.
func checkScratch(prog []Insn) error {
	reach := make([]uint16, len(prog)) // words written on every jump to here
	for i := range reach {
		reach[i] = 0xffff
	}
	var written uint16
	for pc, in := range prog {
		written &= reach[pc]
		switch in.Code {
		case St, Stx:
			written |= 1 << in.K
		case LdMem, LdxMem:
			if written&(1<<in.K) == 0 {
				return fmt.Errorf("instruction %d: scratch word %d is read before it is written", pc, in.K)
			}
		case Ja:
			reach[pc+1+int(in.K)] &= written
			written = 0xffff
		case JeqK, JeqX, JgtK, JgtX, JgeK, JgeX, JsetK, JsetX:
			reach[pc+1+int(in.JT)] &= written
			reach[pc+1+int(in.JF)] &= written
			written = 0xffff
		}
	}
	return nil
}
