// Package hello finds the server name (SNI) in the ClientHello that a TLS client
// sends first, in the clear, over one or more records (RFC 8446, RFC 6066).
//
// The bytes come from the program, and what is read here must be what a server
// reads. So everything that two parsers could read in two ways is malformed: a
// second list of names, a second name, bytes after the end of something. Crypto
// is neither needed nor linked.
//
// What a name in the clear cannot tell: with Encrypted Client Hello the real name
// is in an extension that only the server reads, after a HelloRetryRequest the
// client sends a second hello, and in the encrypted part a client may ask a
// server of several names for another one (domain fronting). Whoever runs the
// server of the listed name decides on all three.
package hello

import "errors"

// Max bounds a hello, with the headers of its records.
const Max = 64 << 10

// What can be wrong.
var (
	ErrNotTLS    = errors.New("not TLS")
	ErrNoName    = errors.New("no server name")
	ErrMalformed = errors.New("malformed TLS hello")
	ErrTooLong   = errors.New("TLS hello too long")
)

// Of the protocol.
const (
	recordHandshake  = 22
	recordHeader     = 5
	maxRecord        = 1 << 14
	messageHello     = 1
	messageHeader    = 4
	extServerName    = 0
	nameOfHost       = 0
	maxName          = 255
	versionAndRandom = 2 + 32
)

// ServerName is the name in a hello of which record holds the first bytes, or
// all and what follows. Without done and without an error it takes more bytes.
func ServerName(record []byte) (name string, done bool, err error) {
	var p Parser
	return p.Feed(record)
}

// Parser takes a hello in pieces, and looks at each byte once: a client that
// sends single bytes would else make us read 64 KiB as many times.
type Parser struct {
	total   int    // bytes seen
	header  []byte // of the record that begins
	left    int    // bytes of the record that are still to come
	message []byte // of the handshake, from all records so far
}

// Feed takes the next bytes. After done or an error the parser is used up.
func (p *Parser) Feed(b []byte) (name string, done bool, err error) {
	for len(b) > 0 {
		if p.left == 0 {
			n, err := p.begin(b)
			if err != nil {
				return "", false, err
			}
			b = b[n:]
			continue
		}
		n := min(p.left, len(b))
		if p.total += n; p.total > Max {
			return "", false, ErrTooLong
		}
		p.message, p.left, b = append(p.message, b[:n]...), p.left-n, b[n:]
		whole, err := p.complete()
		if err != nil {
			return "", false, err
		}
		if whole {
			name, err := inMessage(p.message)
			return name, err == nil, err
		}
	}
	return "", false, nil
}

// begin takes the next byte of a record's header, and looks at each at once: a
// client that speaks first in another protocol need not send five.
func (p *Parser) begin(b []byte) (int, error) {
	if p.total++; p.total > Max {
		return 0, ErrTooLong
	}
	p.header = append(p.header, b[0])
	first := p.total == len(p.header)
	switch h := p.header; {
	case len(h) == 1 && h[0] != recordHandshake, len(h) == 2 && h[1] != 3:
		if first {
			return 0, ErrNotTLS
		}
		return 0, ErrMalformed // another kind of record in the middle of a hello
	case len(h) == recordHeader:
		p.left, p.header = int(h[3])<<8|int(h[4]), h[:0]
		// An empty record of a handshake is forbidden, and would be work for
		// nothing.
		if p.left == 0 || p.left > maxRecord {
			return 0, ErrMalformed
		}
	}
	return 1, nil
}

// complete says whether the message is all there. It must end with its record:
// a client has nothing more to say before the server has spoken.
func (p *Parser) complete() (bool, error) {
	m := p.message
	if m[0] != messageHello {
		return false, ErrMalformed
	}
	if len(m) < messageHeader {
		return false, nil
	}
	size := messageHeader + int(m[1])<<16 + int(m[2])<<8 + int(m[3])
	switch {
	case size > Max-recordHeader:
		return false, ErrTooLong
	case len(m) < size:
		return false, nil
	case len(m) > size || p.left > 0:
		return false, ErrMalformed
	}
	return true, nil
}

// inMessage is the name in a whole ClientHello.
func inMessage(m []byte) (string, error) {
	r := reader(m[messageHeader:])
	_, ok := r.take(versionAndRandom)
	session, ok1 := r.block(1)
	suites, ok2 := r.block(2)
	compression, ok3 := r.block(1)
	if !ok || !ok1 || !ok2 || !ok3 || len(session) > 32 || len(suites) < 2 || len(suites)%2 != 0 || len(compression) == 0 {
		return "", ErrMalformed
	}
	if len(r) == 0 {
		return "", ErrNoName // extensions came later than TLS
	}
	extensions, ok := r.block(2)
	if !ok || len(r) > 0 {
		return "", ErrMalformed
	}
	return inExtensions(reader(extensions))
}

// inExtensions looks at all of them: of two with a server name, one server takes
// the first and another the last.
func inExtensions(r reader) (string, error) {
	name := ""
	for len(r) > 0 {
		kind, ok := r.number(2)
		body, ok1 := r.block(2)
		if !ok || !ok1 {
			return "", ErrMalformed
		}
		if kind != extServerName {
			continue
		}
		if name != "" {
			return "", ErrMalformed
		}
		var err error
		if name, err = inNames(reader(body)); err != nil {
			return "", err
		}
	}
	if name == "" {
		return "", ErrNoName
	}
	return name, nil
}

// inNames is the one name of a server_name extension. The format has room for
// others and for other kinds; no client sends any.
func inNames(r reader) (string, error) {
	list, ok := r.block(2)
	if !ok || len(r) > 0 {
		return "", ErrMalformed
	}
	names := reader(list)
	kind, ok := names.number(1)
	name, ok1 := names.block(2)
	if !ok || !ok1 || kind != nameOfHost || len(names) > 0 || len(name) == 0 || len(name) > maxName {
		return "", ErrMalformed
	}
	for _, c := range name {
		// A NUL ends a name for who reads it in C, and what is not ASCII has
		// upper and lower case of its own.
		if c <= ' ' || c > '~' {
			return "", ErrMalformed
		}
	}
	return string(name), nil
}

// reader cuts pieces off the front.
type reader []byte

func (r *reader) take(n int) ([]byte, bool) {
	if len(*r) < n {
		return nil, false
	}
	b := (*r)[:n]
	*r = (*r)[n:]
	return b, true
}

func (r *reader) number(size int) (n int, ok bool) {
	b, ok := r.take(size)
	for _, c := range b {
		n = n<<8 | int(c)
	}
	return n, ok
}

// block is a piece with its length in front, of size bytes.
func (r *reader) block(size int) ([]byte, bool) {
	n, ok := r.number(size)
	if !ok {
		return nil, false
	}
	return r.take(n)
}
