package wire

// Waits says what a sandbox that is made before there is a program for it waits
// in.
type Waits uint8

const (
	// NoWait is an ordinary run.
	NoWait Waits = iota
	// InitWaits: the program's process has every control on it and waits to hear from
	// init what to execute.
	InitWaits
	// ProgramWaits: the program, an interpreter, runs under the whole policy, and is
	// stopped by the FIFO that its text comes through, see OpText.
	ProgramWaits
)

// TextFile is the name beside an OpText's target under which its text is written.
// It takes the target's place before the program gets the first byte.
const TextFile = ".text"

// Release is what a sandbox that waits is given. Of one whose program runs
// already only Limit counts.
type Release struct {
	Limit uint64 // as Config's, from now on

	Paths []string
	Argv  []string
	Env   []string
	// Code and Files are OpCopy, Code OpLink as well: it goes to the root itself,
	// which only init can still write, and Files below what the program may write.
	Code, Files []Op
}

// Encode is the body of a Release frame.
func (r *Release) Encode() []byte {
	e := &encoder{}
	e.uint(r.Limit)
	e.strings(r.Paths)
	e.strings(r.Argv)
	e.strings(r.Env)
	for _, list := range [...][]Op{r.Code, r.Files} {
		e.uint(uint64(len(list)))
		for i := range list {
			list[i].encode(e)
		}
	}
	return e.b
}

// DecodeRelease is the inverse of Encode.
func DecodeRelease(b []byte) (*Release, error) {
	d := &decoder{b: b}
	r := &Release{Limit: d.uint(), Paths: d.strings(), Argv: d.strings(), Env: d.strings()}
	for i, list := range [...]*[]Op{&r.Code, &r.Files} {
		for n := d.count(); n > 0 && !d.bad; n-- {
			o := decodeOp(d)
			d.bad = d.bad || o.Kind != OpCopy && (o.Kind != OpLink || i > 0)
			*list = append(*list, o)
		}
	}
	if r.Limit == 0 || r.Limit > MaxLimit {
		d.bad = true
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return r, nil
}
