package wire

import (
	"encoding/binary"
	"io"
)

// Type is the first byte of a frame.
type Type byte

// The frames. IDs, Files, Config, Ack and Release go to init, the others to the supervisor.
const (
	TypeConfig Type = iota + 1
	TypeAck
	TypeFailed
	TypeNotStarted
	TypeStarted
	TypeExited
	TypeFiles
	TypeReady
	TypeTerminal
	TypeNetwork
	TypeIDs
	TypeWaits
	TypeText
	TypeRelease
	TypeRooted
	TypeExecutes
)

// Report is any message of init's.
type Report struct {
	Type Type

	Step  string // Failed: the step
	Errno uint32 // Failed, NotStarted
	Path  string // NotStarted: what could not be executed; Failed: the path, if one

	Landlock uint32 // Started: the version of the program's Landlock domain, 0 for none

	IPv6 bool // Network: the listeners are of both families

	Status   uint32 // Exited: wait status as wait4(2) gives it
	UserUS   uint64 // Exited: CPU time of the program and the children it waited for
	SystemUS uint64

	At uint64 // Executes, Exited: when, in ns of the clock on the wall
}

// Encode is the body of a report frame.
func (r *Report) Encode() []byte {
	e := &encoder{}
	e.string(r.Step)
	e.uint(uint64(r.Errno))
	e.string(r.Path)
	e.uint(uint64(r.Landlock))
	e.bool(r.IPv6)
	e.uint(uint64(r.Status))
	e.uint(r.UserUS)
	e.uint(r.SystemUS)
	e.uint(r.At)
	return e.b
}

// DecodeReport is the inverse of Encode.
func DecodeReport(t Type, b []byte) (*Report, error) {
	if (t < TypeFailed || t > TypeExited) && (t < TypeReady || t > TypeExecutes || t == TypeIDs || t == TypeRelease) {
		return nil, ErrMalformed
	}
	d := &decoder{b: b}
	r := &Report{
		Type: t, Step: d.string(), Errno: d.uint32(), Path: d.string(),
		Landlock: d.uint32(), IPv6: d.bool(), Status: d.uint32(), UserUS: d.uint(), SystemUS: d.uint(), At: d.uint(),
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return r, nil
}

const headerSize = 5

// Frame puts a body into a frame.
func Frame(t Type, body []byte) []byte {
	f := make([]byte, headerSize, headerSize+len(body))
	f[0] = byte(t)
	binary.LittleEndian.PutUint32(f[1:], uint32(len(body)))
	return append(f, body...)
}

// ReadFrame reads one frame of at most limit body bytes. io.EOF means that the
// peer is gone and sent nothing.
func ReadFrame(r io.Reader, limit int) (Type, []byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(h[1:])
	if uint64(n) > uint64(limit) {
		return 0, nil, ErrMalformed
	}
	body := make([]byte, n)
	switch _, err := io.ReadFull(r, body); err {
	case nil:
		return Type(h[0]), body, nil
	case io.EOF, io.ErrUnexpectedEOF:
		return 0, nil, ErrMalformed
	default:
		return 0, nil, err // the system call's own
	}
}
