#include "textflag.h"

// func rawVfork(nr, a1, a2, a3 uintptr) (r1, errno uintptr)
//
// The return address is in R30 here, which parent and child have each for
// itself, so the shared stack needs no care.
TEXT ·rawVfork(SB), NOSPLIT|NOFRAME, $0-48
	MOVD	nr+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	ZR, R5
	SVC
	CMN	$4095, R0
	BCC	ok
	MOVD	$-1, R4
	MOVD	R4, r1+32(FP)
	NEG	R0, R0
	MOVD	R0, errno+40(FP)
	RET
ok:
	MOVD	R0, r1+32(FP)
	MOVD	ZR, errno+40(FP)
	RET

// func rawSpawn(nr, a1, a2, a3 uintptr, c *child) (pid, errno uintptr)
//
// The child begins at the instruction after SVC with a stack of its own, on
// which only c is put.
TEXT ·rawSpawn(SB), NOSPLIT, $16-56
	MOVD	nr+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	c+32(FP), R19
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	ZR, R5
	SVC
	CBZ	R0, child
	CMN	$4095, R0
	BCC	ok
	MOVD	$-1, R4
	MOVD	R4, pid+40(FP)
	NEG	R0, R0
	MOVD	R0, errno+48(FP)
	RET
ok:
	MOVD	R0, pid+40(FP)
	MOVD	ZR, errno+48(FP)
	RET
child:
	MOVD	R19, 8(RSP)
	CALL	·spawned(SB)
	BRK
