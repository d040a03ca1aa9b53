// Package bpfvm decodes, checks and runs classic BPF programs over the data of
// one system call, as the kernel does for seccomp(2). With it a filter can be
// asked for its verdict on any call without installing it.
package bpfvm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes that the kernel fixes.
const (
	InsnSize = 8    // bytes of one struct sock_filter
	MaxInsns = 4096 // BPF_MAXINSNS
	DataSize = 64   // bytes of struct seccomp_data
)

// The instruction codes that seccomp accepts, by their names in
// linux/bpf_common.h. Source K is the constant, X the index register.
const (
	LdAbs = 0x20 // BPF_LD | BPF_W | BPF_ABS
	LdLen = 0x80
	LdImm = 0x00
	LdMem = 0x60

	LdxLen = 0x81
	LdxImm = 0x01
	LdxMem = 0x61

	St  = 0x02
	Stx = 0x03

	AddK, AddX = 0x04, 0x0c
	SubK, SubX = 0x14, 0x1c
	MulK, MulX = 0x24, 0x2c
	DivK, DivX = 0x34, 0x3c
	OrK, OrX   = 0x44, 0x4c
	AndK, AndX = 0x54, 0x5c
	LshK, LshX = 0x64, 0x6c
	RshK, RshX = 0x74, 0x7c
	XorK, XorX = 0xa4, 0xac
	Neg        = 0x84

	Ja           = 0x05
	JeqK, JeqX   = 0x15, 0x1d
	JgtK, JgtX   = 0x25, 0x2d
	JgeK, JgeX   = 0x35, 0x3d
	JsetK, JsetX = 0x45, 0x4d

	RetK = 0x06
	RetA = 0x16

	Tax = 0x07
	Txa = 0x87
)

// Insn is one instruction, struct sock_filter.
type Insn struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// Data is struct seccomp_data: what a filter sees of a call.
type Data struct {
	Nr   uint32 // with the x32 bit (1<<30) where the caller set it
	Arch uint32 // AUDIT_ARCH_*
	IP   uint64
	Args [6]uint64
}

// word is the 32-bit load at byte offset off, little endian as on both
// architectures that we support.
func (d *Data) word(off uint32) uint32 {
	switch off {
	case 0:
		return d.Nr
	case 4:
		return d.Arch
	case 8:
		return uint32(d.IP)
	case 12:
		return uint32(d.IP >> 32)
	}
	arg := d.Args[(off-16)/8]
	if off%8 == 0 {
		return uint32(arg)
	}
	return uint32(arg >> 32)
}

// Decode reads the raw little-endian form. It checks sizes only, see Check.
func Decode(raw []byte) ([]Insn, error) {
	switch {
	case len(raw) == 0:
		return nil, errors.New("empty program")
	case len(raw)%InsnSize != 0:
		return nil, fmt.Errorf("%d bytes are not a whole number of %d-byte instructions", len(raw), InsnSize)
	case len(raw) > MaxInsns*InsnSize:
		return nil, fmt.Errorf("%d instructions, the kernel takes at most %d", len(raw)/InsnSize, MaxInsns)
	}
	prog := make([]Insn, len(raw)/InsnSize)
	for i := range prog {
		b := raw[i*InsnSize:]
		prog[i] = Insn{
			Code: binary.LittleEndian.Uint16(b),
			JT:   b[2],
			JF:   b[3],
			K:    binary.LittleEndian.Uint32(b[4:]),
		}
	}
	return prog, nil
}

// Encode is the reverse of Decode.
func Encode(prog []Insn) []byte {
	raw := make([]byte, 0, len(prog)*InsnSize)
	for _, in := range prog {
		raw = binary.LittleEndian.AppendUint16(raw, in.Code)
		raw = append(raw, in.JT, in.JF)
		raw = binary.LittleEndian.AppendUint32(raw, in.K)
	}
	return raw
}
