package wire

// IDs are what init becomes inside, where they are mapped only after it has
// started.
type IDs struct{ UID, GID uint32 }

// MaxIDs bounds an IDs frame.
const MaxIDs = 16

// Encode is the body of an IDs frame.
func (i *IDs) Encode() []byte {
	e := &encoder{}
	e.uint(uint64(i.UID))
	e.uint(uint64(i.GID))
	return e.b
}

// DecodeIDs is the inverse of Encode.
func DecodeIDs(t Type, b []byte) (*IDs, error) {
	if t != TypeIDs {
		return nil, ErrMalformed
	}
	d := &decoder{b: b}
	i := &IDs{UID: d.uint32(), GID: d.uint32()}
	if err := d.end(); err != nil {
		return nil, err
	}
	return i, nil
}
