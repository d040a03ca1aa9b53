package resolver

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	header   = 12
	maxQuery = 4096 // a name has 255 bytes; the rest is options that nobody reads here
	payload  = 1232 // what UDP may carry to us without being cut, as name servers say it
	ttl      = 60   // the addresses stay as they are for the whole run
)

// badVersion is for an EDNS version that is not 0; four of its bits are in the
// OPT record.
const badVersion = dnsmessage.RCode(16)

// query is a message as far as it was understood.
type query struct {
	header   dnsmessage.Header
	asked    bool // there is a question, which goes back
	question dnsmessage.Question
	edns, do bool
	name     string // canonical, once it is allowed
}

// read takes a message apart. Of no query at all nothing comes back: an answer
// to an answer could go round for ever.
func read(msg []byte) (*query, dnsmessage.RCode) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || h.Response {
		return nil, 0
	}
	q := &query{header: h}
	if h.OpCode != 0 {
		return q, dnsmessage.RCodeNotImplemented
	}
	// One question and no answers; behind it at most OPT and a signature.
	counts := [4]uint16{}
	for i := range counts {
		counts[i] = binary.BigEndian.Uint16(msg[4+2*i:])
	}
	if counts[0] != 1 || counts[1] != 0 || counts[2] != 0 || counts[3] > 2 || !plain(msg[header:]) {
		return q, dnsmessage.RCodeFormatError
	}
	if q.question, err = p.Question(); err != nil {
		return q, dnsmessage.RCodeFormatError
	}
	q.asked = true
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return q, dnsmessage.RCodeFormatError
	}
	if code := q.options(&p); code != dnsmessage.RCodeSuccess {
		return q, code
	}
	if q.question.Class != dnsmessage.ClassINET {
		return q, dnsmessage.RCodeRefused // version.bind and the like
	}
	return q, dnsmessage.RCodeSuccess
}

// plain tells whether a name is spelled out. A pointer in a question, which has
// nothing before it to point to, would make the answer longer than the query.
func plain(b []byte) bool {
	for len(b) > 0 && b[0] <= 63 {
		if b[0] == 0 {
			return true
		}
		b = b[min(len(b), 1+int(b[0])):]
	}
	return false
}

// options reads the records behind the question: one OPT, others are passed over.
func (q *query) options(p *dnsmessage.Parser) dnsmessage.RCode {
	code := dnsmessage.RCodeSuccess
	for {
		h, err := p.AdditionalHeader()
		switch {
		case err == dnsmessage.ErrSectionDone:
			return code
		case err != nil || h.Type == dnsmessage.TypeOPT && q.edns:
			return dnsmessage.RCodeFormatError
		case h.Type == dnsmessage.TypeOPT:
			q.edns, q.do = true, h.DNSSECAllowed()
			if byte(h.TTL>>16) != 0 {
				code = badVersion
			}
		}
		if p.SkipAdditional() != nil {
			return dnsmessage.RCodeFormatError
		}
	}
}

// reply builds the message that goes back. The question in it has the letters
// and their case as they came: clients compare them against forgers. It is never
// longer than 512 bytes, so that nothing is ever cut.
func (q *query) reply(a answer) []byte {
	b := dnsmessage.NewBuilder(make([]byte, 0, 512), dnsmessage.Header{
		ID: q.header.ID, Response: true, OpCode: q.header.OpCode & 15,
		RecursionDesired: q.header.RecursionDesired, RecursionAvailable: true, RCode: a.code & 15,
	})
	err := q.records(&b, a)
	if err != nil {
		return nil
	}
	msg, err := b.Finish()
	if err != nil {
		return nil
	}
	return msg
}

func (q *query) records(b *dnsmessage.Builder, a answer) error {
	b.EnableCompression()
	if q.asked {
		if err := b.StartQuestions(); err != nil {
			return err
		}
		if err := b.Question(q.question); err != nil {
			return err
		}
	}
	if err := b.StartAnswers(); err != nil {
		return err
	}
	if err := q.answers(b, a); err != nil || !q.edns {
		return err
	}
	if err := b.StartAdditionals(); err != nil {
		return err
	}
	h := dnsmessage.ResourceHeader{Name: root}
	if err := h.SetEDNS0(payload, a.code, q.do); err != nil {
		return err
	}
	return b.OPTResource(h, dnsmessage.OPTResource{})
}

var root = dnsmessage.Name{Data: [255]byte{'.'}, Length: 1}

func (q *query) answers(b *dnsmessage.Builder, a answer) error {
	h := dnsmessage.ResourceHeader{Name: q.question.Name, Class: dnsmessage.ClassINET, TTL: ttl}
	switch {
	case a.ptr != "":
		name, err := dnsmessage.NewName(a.ptr + ".")
		if err != nil {
			return err
		}
		return b.PTRResource(h, dnsmessage.PTRResource{PTR: name})
	case a.addr.Is4():
		return b.AResource(h, dnsmessage.AResource{A: a.addr.As4()})
	case a.addr.Is6():
		return b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.addr.As16()})
	}
	return nil
}

// reversed is the address of a name below in-addr.arpa or ip6.arpa, if it is one.
func reversed(name string) (netip.Addr, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if four, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		p := strings.Split(four, ".")
		if len(p) != 4 {
			return netip.Addr{}, false
		}
		addr, err := netip.ParseAddr(p[3] + "." + p[2] + "." + p[1] + "." + p[0])
		return addr, err == nil
	}
	nibbles, ok := strings.CutSuffix(name, ".ip6.arpa")
	if !ok || len(nibbles) != 63 {
		return netip.Addr{}, false
	}
	var a [16]byte
	for i := range 32 {
		n := strings.IndexByte("0123456789abcdef", nibbles[62-2*i])
		if n < 0 || i > 0 && nibbles[63-2*i] != '.' {
			return netip.Addr{}, false
		}
		a[i/2] |= byte(n) << (4 * (1 - i%2))
	}
	return netip.AddrFrom16(a), true
}
