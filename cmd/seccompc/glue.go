package main

import (
	"maps"
	"slices"

	"sandglass/pkg/seccomp/bpfvm"
)

// leafSize is how many numbers are compared one after the other before the
// search splits.
const leafSize = 3

// glue puts the dispatch before programs. targets says which calls go to which
// program; all others go to programs[0]. Kernels run the filter once for each
// call number when it is installed, so dispatch is a binary search.
//
//	ld arch
//	jeq token, 1, 0
//	ret KILL_PROCESS
//	ld nr
//	search: jge, jeq → trampolines
//	trampolines: ja program, one for each, main's first
//	programs
func glue(token uint32, targets map[uint32]int, programs [][]bpfvm.Insn) []bpfvm.Insn {
	prog := []bpfvm.Insn{
		{Code: bpfvm.LdAbs, K: 4},
		{Code: bpfvm.JeqK, K: token, JT: 1},
		{Code: bpfvm.RetK, K: 0x80000000}, // KILL_PROCESS
		{Code: bpfvm.LdAbs, K: 0},
	}
	numbers := slices.Sorted(maps.Keys(targets))
	prog = append(prog, node(numbers, targets, 0)...)
	// Conditional jumps reach 255 instructions, so programs are entered by
	// unconditional ones, which reach everything.
	distance := len(programs) - 1
	for _, program := range programs {
		prog = append(prog, bpfvm.Insn{Code: bpfvm.Ja, K: uint32(distance)})
		distance += len(program) - 1
	}
	for _, program := range programs {
		prog = append(prog, program...)
	}
	return prog
}

// node is a decision tree over sorted numbers, with the call's number in the
// accumulator. behind instructions lie between its end and the trampolines.
func node(numbers []uint32, targets map[uint32]int, behind int) []bpfvm.Insn {
	if len(numbers) <= leafSize {
		var leaf []bpfvm.Insn
		for i, n := range numbers {
			toEnd := len(numbers) - i // the jump to main's trampoline is last
			leaf = append(leaf, bpfvm.Insn{Code: bpfvm.JeqK, K: n, JT: offset(toEnd + behind + targets[n])})
		}
		return append(leaf, bpfvm.Insn{Code: bpfvm.Ja, K: uint32(behind)})
	}
	half := len(numbers) / 2
	high := node(numbers[half:], targets, behind)
	low := node(numbers[:half], targets, behind+len(high))
	split := bpfvm.Insn{Code: bpfvm.JgeK, K: numbers[half], JT: offset(len(low))}
	return append(append([]bpfvm.Insn{split}, low...), high...)
}

// offset is a conditional jump's distance. A profile that needs more than 255
// would have hundreds of calls with conditions.
func offset(n int) uint8 {
	if n > 255 {
		panic("seccompc: too many calls with conditions for one dispatch")
	}
	return uint8(n)
}
