package testkit

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Names is what a test's name server knows of a name.
type Names struct {
	Addrs  []netip.Addr
	Code   dnsmessage.RCode
	Silent bool
}

// Reply is a name server's reply to one message, nil where there is none. look gets
// the name in lower case, without the dot at its end.
func Reply(msg []byte, look func(name string) Names) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	a := look(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")))
	if a.Silent {
		return nil
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RecursionAvailable: true, RCode: a.Code})
	b.EnableCompression()
	b.StartQuestions()
	b.Question(q)
	b.StartAnswers()
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
	for _, addr := range a.Addrs {
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			b.AResource(head, dnsmessage.AResource{A: addr.As4()})
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			b.AAAAResource(head, dnsmessage.AAAAResource{AAAA: addr.As16()})
		}
	}
	reply, _ := b.Finish()
	return reply
}
