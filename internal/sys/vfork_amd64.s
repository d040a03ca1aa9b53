#include "textflag.h"

// func rawVfork(nr, a1, a2, a3 uintptr) (r1, errno uintptr)
//
// The child of a CLONE_VM clone runs on this very stack while the parent
// waits, and overwrites the return address; so it is kept in a register, which
// each of the two has for itself.
TEXT ·rawVfork(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ	nr+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	MOVQ	$-1, r1+32(FP)
	NEGQ	AX
	MOVQ	AX, errno+40(FP)
	RET
ok:
	MOVQ	AX, r1+32(FP)
	MOVQ	$0, errno+40(FP)
	RET

// func rawSpawn(nr, a1, a2, a3 uintptr, c *child) (pid, errno uintptr)
//
// The child begins at the instruction after SYSCALL with a stack of its own,
// on which only c is put.
TEXT ·rawSpawn(SB), NOSPLIT, $16-56
	MOVQ	nr+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	MOVQ	c+32(FP), R12
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	SYSCALL
	TESTQ	AX, AX
	JZ	child
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	MOVQ	$-1, pid+40(FP)
	NEGQ	AX
	MOVQ	AX, errno+48(FP)
	RET
ok:
	MOVQ	AX, pid+40(FP)
	MOVQ	$0, errno+48(FP)
	RET
child:
	MOVQ	R12, 0(SP)
	CALL	·spawned(SB)
	INT	$3
