package wire

import (
	"encoding/binary"
	"errors"
)

// A frame is a type byte, a 32-bit little-endian length and that many bytes.
// Inside, integers are unsigned varints and byte strings are length-prefixed.

// MaxConfig bounds a Config frame: argv and environment (2 MiB, see execve(2)),
// the filter, the plan.
const MaxConfig = 8 << 20

// MaxReport bounds what the supervisor reads from init. Init runs beside
// hostile code, so it is believed as little as that code.
const MaxReport = 16 << 10

// ErrMalformed is any frame that does not decode exactly.
var ErrMalformed = errors.New("malformed message")

type encoder struct{ b []byte }

func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}
func (e *encoder) fd(v int32)     { e.uint(uint64(uint32(v))) }
func (e *encoder) bytes(v []byte) { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) string(v string) {
	e.uint(uint64(len(v)))
	e.b = append(e.b, v...)
}
func (e *encoder) strings(v []string) {
	e.uint(uint64(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

// decoder reads what encoder wrote. The first error sticks; a length is checked
// against what is left before anything is allocated for it.
type decoder struct {
	b    []byte
	text string // all of it once more, for a message with many strings: they share it
	bad  bool
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uint()
	if v > 1<<32-1 {
		d.bad = true
		return 0
	}
	return uint32(v)
}

func (d *decoder) uint16() uint16 {
	v := d.uint()
	if v > 1<<16-1 {
		d.bad = true
		return 0
	}
	return uint16(v)
}

func (d *decoder) bool() bool {
	v := d.uint()
	if v > 1 {
		d.bad = true
	}
	return v == 1
}

func (d *decoder) fd() int32 { return int32(d.uint32()) }

func (d *decoder) byte() byte {
	v := d.uint()
	if v > 255 {
		d.bad = true
	}
	return byte(v)
}

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string {
	v := d.bytes()
	if d.text == "" {
		return string(v)
	}
	end := len(d.text) - len(d.b)
	return d.text[end-len(v) : end]
}

// count reads the length of a list whose elements take at least one byte each.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) strings() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	v := make([]string, 0, n)
	for i := 0; i < n && !d.bad; i++ {
		v = append(v, d.string())
	}
	return v
}

func (d *decoder) end() error {
	if d.bad || len(d.b) != 0 {
		return ErrMalformed
	}
	return nil
}

// Encode is the body of a Config frame.
func (c *Config) Encode() []byte {
	e := &encoder{b: make([]byte, 0, 16<<10)}
	e.string(c.Hostname)
	e.uint(uint64(len(c.Mounts)))
	for i := range c.Mounts {
		c.Mounts[i].encode(e)
	}
	e.bool(c.Loopback)
	c.encodeNetwork(e)
	e.fd(c.Box)
	e.uint(uint64(len(c.Tasks)))
	for _, fd := range c.Tasks {
		e.fd(fd)
	}
	e.bool(c.CgroupNS)
	e.uint(uint64(len(c.Rlimits)))
	for _, r := range c.Rlimits {
		e.uint(uint64(uint32(r.Resource)))
		e.uint(r.Soft)
		e.uint(r.Hard)
	}
	e.bool(c.SmallPages)
	e.bytes(c.Seccomp)
	e.bytes(c.InitSeccomp)
	e.bool(c.Listener)
	e.fd(c.Stdin)
	e.fd(c.Stdout)
	e.fd(c.Stderr)
	e.bool(c.Terminal)
	e.uint(uint64(c.Rows))
	e.uint(uint64(c.Cols))
	e.strings(c.Paths)
	e.strings(c.Argv)
	e.strings(c.Env)
	e.string(c.Dir)
	e.bytes(c.CPUs)
	e.strings(c.Writable)
	e.string(c.OutDir)
	e.uint(c.Limit)
	e.uint(uint64(c.Waits))
	e.uint(c.Idle)
	return e.b
}

func (o *Op) encode(e *encoder) {
	e.uint(uint64(o.Kind))
	e.string(o.Source)
	e.string(o.Target)
	e.fd(o.FD)
	e.uint(uint64(o.Attr))
	e.bool(o.Recursive)
	e.uint(uint64(o.Mode))
	e.uint(o.Size)
	e.uint(o.Offset)
	e.uint(o.Inodes)
	e.uint(o.Dev)
	e.uint(o.Ino)
	e.bytes(o.Data)
}

// DecodeConfig is the inverse of Encode.
func DecodeConfig(b []byte) (*Config, error) {
	d := &decoder{b: b, text: string(b)}
	c := &Config{Hostname: d.string()}
	n := d.count()
	c.Mounts = make([]Op, 0, min(n, len(d.b)/leastOp))
	for ; n > 0 && !d.bad; n-- {
		c.Mounts = append(c.Mounts, decodeOp(d))
	}
	c.Loopback = d.bool()
	c.decodeNetwork(d)
	c.Box = d.fd()
	for n := d.count(); n > 0 && !d.bad; n-- {
		c.Tasks = append(c.Tasks, d.fd())
	}
	c.CgroupNS = d.bool()
	for n := d.count(); n > 0 && !d.bad; n-- {
		c.Rlimits = append(c.Rlimits, Rlimit{Resource: d.fd(), Soft: d.uint(), Hard: d.uint()})
	}
	c.SmallPages = d.bool()
	c.Seccomp, c.InitSeccomp, c.Listener = d.bytes(), d.bytes(), d.bool()
	c.Stdin, c.Stdout, c.Stderr = d.fd(), d.fd(), d.fd()
	c.Terminal, c.Rows, c.Cols = d.bool(), d.uint16(), d.uint16()
	c.Paths, c.Argv, c.Env = d.strings(), d.strings(), d.strings()
	c.Dir, c.CPUs, c.Writable, c.OutDir = d.string(), d.bytes(), d.strings(), d.string()
	// Without one a stopped supervisor would be no limit at all.
	if c.Limit = d.uint(); c.Limit == 0 || c.Limit > MaxLimit {
		d.bad = true
	}
	c.Waits, c.Idle = Waits(d.byte()), d.uint()
	if c.Waits > ProgramWaits || (c.Waits == NoWait) != (c.Idle == 0) || c.Idle > MaxLimit {
		d.bad = true
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return c, nil
}

// leastOp is how many bytes an Op takes at least: one for each field.
const leastOp = 13

func decodeOp(d *decoder) Op {
	return Op{
		Kind: Kind(d.byte()), Source: d.string(), Target: d.string(), FD: d.fd(),
		Attr: Attr(d.byte()), Recursive: d.bool(), Mode: d.uint32(), Size: d.uint(),
		Offset: d.uint(), Inodes: d.uint(), Dev: d.uint(), Ino: d.uint(), Data: d.bytes(),
	}
}
