package compile

import (
	"errors"
	"maps"
	"slices"

	"sandglass/pkg/seccomp/bpfvm"
)

// Glue puts the dispatch before programs. targets says which calls go to which
// program; all others go to programs[0]. Kernels translate the whole filter and
// run it once for each call number when it is installed, so the dispatch is a
// binary search over ranges of numbers with one target.
//
//	ld arch
//	jeq token, 1, 0
//	ret KILL_PROCESS
//	ld nr
//	search: jge → entries
//	entries: ja program, or the program itself where it is one ret; main's first
//	programs
func Glue(token uint32, targets map[uint32]int, programs [][]bpfvm.Insn) ([]bpfvm.Insn, error) {
	prog := []bpfvm.Insn{
		{Code: bpfvm.LdAbs, K: 4},
		{Code: bpfvm.JeqK, K: token, JT: 1},
		{Code: bpfvm.RetK, K: 0x80000000}, // KILL_PROCESS
		{Code: bpfvm.LdAbs, K: 0},
	}
	// A search of one range has no instruction: it falls into main's entry.
	tree, ok := node(ranges(targets), 0)
	if !ok {
		return nil, errRanges
	}
	prog = append(prog, tree...)
	// Conditional jumps reach 255 instructions, so programs are entered by
	// unconditional ones, which reach everything.
	distance := len(programs) - 1
	for _, program := range programs {
		if len(program) == 1 && program[0].Code == bpfvm.RetK {
			prog = append(prog, program[0])
		} else {
			prog = append(prog, bpfvm.Insn{Code: bpfvm.Ja, K: uint32(distance)})
			distance += len(program)
		}
		distance--
	}
	for _, program := range programs {
		if len(program) != 1 || program[0].Code != bpfvm.RetK {
			prog = append(prog, program...)
		}
	}
	return prog, nil
}

// errRanges: a conditional jump reaches 255 instructions.
var errRanges = errors.New("too many ranges of calls with different rules for one filter")

// span is the numbers from start to the next span's start.
type span struct {
	start  uint32
	target int
}

// ranges covers all numbers, in order. Neighbours have different targets.
func ranges(targets map[uint32]int) []span {
	spans := []span{{0, targets[0]}}
	add := func(n uint32, target int) {
		if spans[len(spans)-1].target != target {
			spans = append(spans, span{n, target})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(targets)) {
		add(n, targets[n])
		if _, ok := targets[n+1]; !ok {
			add(n+1, 0)
		}
	}
	return spans
}

// node is a decision tree over spans, with the call's number in the
// accumulator. behind instructions lie between its end and the entries. One
// span needs no decision: whoever leads to it goes to the entry at once.
func node(spans []span, behind int) (tree []bpfvm.Insn, ok bool) {
	if len(spans) == 1 {
		return nil, true
	}
	half := len(spans) / 2
	high, ok := node(spans[half:], behind)
	if !ok {
		return nil, false
	}
	low, ok := node(spans[:half], behind+len(high))
	if !ok {
		return nil, false
	}
	jt, jf := len(low), 0
	if len(high) == 0 {
		jt = len(low) + behind + spans[half].target
	}
	if len(low) == 0 {
		jf = len(high) + behind + spans[0].target
	}
	if jt > 255 || jf > 255 {
		return nil, false
	}
	split := bpfvm.Insn{Code: bpfvm.JgeK, K: spans[half].start, JT: uint8(jt), JF: uint8(jf)}
	return append(append([]bpfvm.Insn{split}, low...), high...), true
}
