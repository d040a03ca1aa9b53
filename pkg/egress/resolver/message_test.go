package resolver

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandglass/pkg/egress/hosts"
)

// opt is an OPT record, with a DNS cookie where options is set.
func opt(version byte, do bool, options string) []byte {
	b := []byte{0, 0, 41, 0x10, 0, 0, version, 0, 0}
	if do {
		b[7] = 0x80
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(options)))
	return append(b, options...)
}

// with is a query with changed counts and something behind it.
func with(msg []byte, counts [4]uint16, more ...[]byte) []byte {
	msg = slices.Clone(msg)
	for i, n := range counts {
		binary.BigEndian.PutUint16(msg[4+2*i:], n)
	}
	return append(msg, bytes.Join(more, nil)...)
}

func flags(msg []byte, f uint16) []byte {
	msg = slices.Clone(msg)
	binary.BigEndian.PutUint16(msg[2:], f)
	return msg
}

// TestMessages: what is no proper query is told so, in a header alone where the
// question was not understood, or not answered at all.
func TestMessages(t *testing.T) {
	s, h := newServer(t, "a.example")
	q := ask(t, "a.example.", a)
	answer := "Success a.example. a.example.=198.18.1.1"
	cookie := "\x00\x0a\x00\x08abcdefgh"
	chaos := slices.Clone(q)
	chaos[len(chaos)-1] = 3
	pointer := append(slices.Clone(q[:header]), 0xc0, 0, 0, 1, 0, 1)
	counted := append(slices.Clone(q[:header]), 0xc0, 5, 0, 1, 0, 1) // the count of questions and what is behind it, a name of one NUL
	loop := append(slices.Clone(q[:header]), 0xc0, 12, 0, 1, 0, 1)
	behind := append(slices.Clone(q[:header]), 1, 'x', 0xc0, 12, 0, 1, 0, 1)
	reserved := append(slices.Clone(q[:header]), 0x80, 0, 0, 1, 0, 1)
	dot := append(slices.Clone(q[:header]), "\x03a.b\x00\x00\x01\x00\x01"...)
	long := append(slices.Clone(q[:header]), strings.Repeat("\x3f"+strings.Repeat("x", 63), 4)+"\x00\x00\x01\x00\x01"...)
	for _, c := range []struct {
		what string
		msg  []byte
		want string
	}{
		{"a query", q, answer},
		{"nothing", nil, ""},
		{"half a header", q[:11], ""},
		{"an answer", flags(q, 0x8100), ""},
		{"all flags of an answer", flags(q, 0xffff), ""},
		{"a header alone", q[:header], "FormatError"},
		{"no question", with(q[:header], [4]uint16{}), "FormatError"},
		{"two questions", with(q, [4]uint16{2}, q[header:]), "FormatError"},
		{"half a question", q[:len(q)-1], "FormatError"},
		{"half a name", q[:header+4], "FormatError"},
		{"an answer in it", with(q, [4]uint16{1, 1}, opt(0, false, "")), "FormatError"},
		{"an authority in it", with(q, [4]uint16{1, 0, 1}, opt(0, false, "")), "FormatError"},
		{"a pointer into the header", pointer, "FormatError"},
		{"a pointer to the counts", counted, "FormatError"},
		{"a pointer to itself", loop, "FormatError"},
		{"a pointer in the middle", behind, "FormatError"},
		{"a reserved label", reserved, "FormatError"},
		{"a dot in a label", dot, "FormatError"},
		{"a name of 257 bytes", long, "FormatError"},
		{"NOTIFY", flags(q, 4<<11), "NotImplemented"},
		{"UPDATE with rubbish", flags(append(slices.Clone(q[:header]), 0xff, 0xff), 5<<11), "NotImplemented"},
		{"CHAOS", chaos, "Refused a.example."},
		{"not recursive", flags(q, 0), answer},
		{"AD and CD", flags(q, 0x0130), answer},
		{"rubbish behind it", append(slices.Clone(q), 1, 2, 3), answer},

		{"EDNS", with(q, [4]uint16{1, 0, 0, 1}, opt(0, false, "")), answer + " OPT 1232 0 false"},
		{"EDNS with DO and a cookie", with(q, [4]uint16{1, 0, 0, 1}, opt(0, true, cookie)), answer + " OPT 1232 0 true"},
		{"EDNS version 1", with(q, [4]uint16{1, 0, 0, 1}, opt(1, false, "")), "Success a.example. OPT 1232 16 false"},
		{"two OPT", with(q, [4]uint16{1, 0, 0, 2}, opt(0, false, ""), opt(0, false, "")), "FormatError a.example. OPT 1232 1 false"},
		{"three records", with(q, [4]uint16{1, 0, 0, 3}, opt(0, false, "")), "FormatError"},
		{"half an OPT", with(q, [4]uint16{1, 0, 0, 1}, opt(0, false, "")[:5]), "FormatError a.example."},
		{"an OPT shorter than it says", with(q, [4]uint16{1, 0, 0, 1}, opt(0, false, cookie)[:15]), "FormatError a.example. OPT 1232 1 false"},
		{"none where one is counted", with(q, [4]uint16{1, 0, 0, 1}), "FormatError a.example."},
	} {
		got := ""
		reply := s.ask(t, c.msg)
		if reply != nil {
			got = text(t, reply)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if len(reply) > 0 && reply[2]>>3&15 != c.msg[2]>>3&15 {
			t.Errorf("%s: the opcode is another", c.what)
		}
	}
	if _, refused := h.told(); len(refused) != 0 {
		t.Errorf("refused %q", refused)
	}
}

// TestLongestName: the longest names fit into what a client without EDNS takes.
func TestLongestName(t *testing.T) {
	label := strings.Repeat("x", 63)
	name := strings.Join([]string{label, label, label, strings.Repeat("y", 61)}, ".")
	s, _ := newServer(t, name)
	if got := text(t, s.ask(t, with(ask(t, name+".", aaaa), [4]uint16{1, 0, 0, 1}, opt(0, false, "")))); got != "Success "+name+". "+name+".=fd73:616e:6467::c612:101 OPT 1232 0 false" {
		t.Error(got)
	}
	back := "1.1.18.198.in-addr.arpa."
	if got := text(t, s.ask(t, ask(t, back, ptr))); got != "Success "+back+" "+back+"="+name+"." {
		t.Error(got)
	}
}

// FuzzAnswer: no message breaks the server, makes it ask for a name that is not
// listed, or brings back more than a record for what it sent.
func FuzzAnswer(f *testing.F) {
	q := ask(f, "a.example.", a)
	for _, seed := range [][]byte{
		q, ask(f, "x.wild.example.", aaaa), ask(f, "b.example.", txt), ask(f, "1.1.18.198.in-addr.arpa.", ptr), nil, q[:11], q[:15],
		ask(f, "1.0.1.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.0.7.6.4.6.e.6.1.6.3.7.d.f.ip6.arpa.", ptr), ask(f, "A.Example.", dnsmessage.TypeALL),
		flags(q, 0x8180), flags(q, 4<<11), with(q, [4]uint16{2}, q[header:]), with(q, [4]uint16{1, 0, 0, 1}, opt(0, true, "\x00\x0a\x00\x08abcdefgh")),
		with(q, [4]uint16{1, 0, 0, 2}, opt(1, false, ""), opt(0, false, "")), append(slices.Clone(q[:header]), 0xc0, 12, 0, 1, 0, 1),
		ask(f, "a\x00.wild.example.", a),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		s, h := newServer(t, "a.example", "*.wild.example:8443", "10.0.0.0/8")
		s.Table.For("a.example")
		close(h.release)
		reply := s.ask(t, msg)
		asked, _ := h.told()
		for _, name := range asked {
			if c, ok := hosts.Canonical(name); !ok || c != name || name != "a.example" && !strings.HasSuffix(name, ".wild.example") {
				t.Errorf("%q was looked up", name)
			}
		}
		if reply == nil {
			return
		}
		if len(reply) < header || len(reply) > 512 || !bytes.Equal(reply[:2], msg[:2]) || reply[2]&0x80 == 0 || msg[2]&0x80 != 0 {
			t.Fatalf("%x is answered by %x", msg, reply)
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Fatalf("%x is answered by %x: %v", msg, reply, err)
		}
		if len(m.Answers) > 1 || m.RCode != 0 && len(m.Answers) > 0 || len(m.Answers) == 0 && len(reply) > len(msg) {
			t.Errorf("%x is answered by %x", msg, reply)
		}
		if len(m.Questions) == 1 && !bytes.HasPrefix(msg[header:], reply[header:header+len(m.Questions[0].Name.String())]) {
			t.Errorf("the question of %x is %x in the answer", msg, reply)
		}
	})
}
