package resolver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandglass/pkg/egress/names"
)

const (
	a     = dnsmessage.TypeA
	aaaa  = dnsmessage.TypeAAAA
	ptr   = dnsmessage.TypePTR
	txt   = dnsmessage.TypeTXT
	https = dnsmessage.Type(65)
)

// TestAnswers: the whole of what a program can be told, who was asked for it, and
// what is written down.
func TestAnswers(t *testing.T) {
	s, h := newServer(t, "a.example", "*.wild.example:8443", "none.example", "empty.example", "failing.example", "_srv.under_score.example:22", "10.0.0.0/8:443")
	for _, c := range []struct {
		name    string
		kind    dnsmessage.Type
		want    string
		asked   string
		refused string
	}{
		{"a.example.", a, "Success a.example. a.example.=198.18.1.1", "a.example", ""},
		{"a.example.", aaaa, "Success a.example. a.example.=fd73:616e:6467::c612:101", "a.example", ""},
		{"A.eXample.", a, "Success A.eXample. A.eXample.=198.18.1.1", "a.example", ""},
		{"x.wild.example.", a, "Success x.wild.example. x.wild.example.=198.18.1.2", "x.wild.example", ""},
		{"x.y.wild.example.", aaaa, "Success x.y.wild.example. x.y.wild.example.=fd73:616e:6467::c612:103", "x.y.wild.example", ""},
		{"_srv.under_score.example.", a, "Success _srv.under_score.example. _srv.under_score.example.=198.18.1.4", "_srv.under_score.example", ""},
		{"none.example.", a, "NameError none.example.", "none.example", ""},
		{"empty.example.", aaaa, "NameError empty.example.", "empty.example", ""},
		{"failing.example.", a, "ServerFailure failing.example.", "failing.example", ""},

		// Other types of a listed name: nothing, and nobody is asked.
		{"a.example.", https, "Success a.example.", "", ""},
		{"a.example.", txt, "Success a.example.", "", ""},
		{"a.example.", dnsmessage.TypeALL, "Success a.example.", "", ""},
		{"a.example.", ptr, "Success a.example.", "", ""},
		{"secret.wild.example.", txt, "Success secret.wild.example.", "", ""},

		// What is not listed.
		{"b.example.", a, "NameError b.example.", "", `"b.example" 0 not in the list`},
		{"b.example.", txt, "NameError b.example.", "", `"b.example" 0 not in the list`},
		{"sub.a.example.", a, "NameError sub.a.example.", "", `"sub.a.example" 0 not in the list`},
		{"wild.example.", a, "NameError wild.example.", "", `"wild.example" 0 not in the list`},
		{"xa.example.", a, "NameError xa.example.", "", `"xa.example" 0 not in the list`},
		{"a.example.evil.example.", a, "NameError a.example.evil.example.", "", `"a.example.evil.example" 0 not in the list`},
		{"10.0.0.1.", a, "NameError 10.0.0.1.", "", `"10.0.0.1" 0 not in the list`},
		{"a\x00.wild.example.", a, "NameError a\x00.wild.example.", "", `"a\x00.wild.example" 0 not in the list`},
		{"a b.wild.example.", a, "NameError a b.wild.example.", "", `"a b.wild.example" 0 not in the list`},
		{".", a, "NameError .", "", `"." 0 not in the list`},
		{"localhost.", a, "NameError localhost.", "", `"localhost" 0 not in the list`},

		// Reverse lookups, from the table alone.
		{"1.1.18.198.in-addr.arpa.", ptr, "Success 1.1.18.198.in-addr.arpa. 1.1.18.198.in-addr.arpa.=a.example.", "", ""},
		{"1.1.18.198.IN-ADDR.arpa.", ptr, "Success 1.1.18.198.IN-ADDR.arpa. 1.1.18.198.IN-ADDR.arpa.=a.example.", "", ""},
		{"2.0.1.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.0.7.6.4.6.e.6.1.6.3.7.d.f.ip6.arpa.", ptr, "Success 2.0.1.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.0.7.6.4.6.e.6.1.6.3.7.d.f.ip6.arpa. " +
			"2.0.1.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.0.7.6.4.6.e.6.1.6.3.7.d.f.ip6.arpa.=x.wild.example.", "", ""},
		{"9.1.18.198.in-addr.arpa.", ptr, "NameError 9.1.18.198.in-addr.arpa.", "", ""},
		{"1.0.0.10.in-addr.arpa.", ptr, "NameError 1.0.0.10.in-addr.arpa.", "", ""},
		{"secret.in-addr.arpa.", ptr, "NameError secret.in-addr.arpa.", "", `"secret.in-addr.arpa" 0 not in the list`},
	} {
		got := text(t, s.ask(t, ask(t, c.name, c.kind)))
		asked, refused := h.told()
		if got != c.want || strings.Join(asked, " ") != c.asked || strings.Join(refused, "|") != c.refused {
			t.Errorf("%q %v:\n got %q, asked %q, refused %q\nwant %q, asked %q, refused %q", c.name, c.kind, got, asked, refused, c.want, c.asked, c.refused)
		}
	}
}

// TestWithoutIPv6: nobody is asked for an address that could not be used.
func TestWithoutIPv6(t *testing.T) {
	s, h := newServer(t, "a.example")
	s.V6 = false
	if got := text(t, s.ask(t, ask(t, "a.example.", aaaa))); got != "Success a.example." {
		t.Error(got)
	}
	asked, refused := h.told()
	same(t, "asked", asked)
	same(t, "refused", refused)
	if got := text(t, s.ask(t, ask(t, "a.example.", a))); got != "Success a.example. a.example.=198.18.1.1" {
		t.Error(got)
	}
}

// TestTooManyBelow: what a program can carry out in names below a wildcard is
// bounded by their number, whether they exist or not.
func TestTooManyBelow(t *testing.T) {
	s, h := newServer(t, "*.wild.example", "*.other.example", "api.wild.example")
	for i := range maxBelow {
		name := fmt.Sprintf("none%d.wild.example.", i)
		for range 2 { // the second time it is free
			if got := text(t, s.ask(t, ask(t, name, a))); got != "NameError "+name {
				t.Fatal(got)
			}
		}
	}
	h.told()
	if got := text(t, s.ask(t, ask(t, "more.wild.example.", a))); got != "Refused more.wild.example." {
		t.Error(got)
	}
	asked, refused := h.told()
	same(t, "asked", asked)
	same(t, "refused", refused, `"more.wild.example" 0 too many names below *.wild.example`)
	for _, name := range []string{"none0.wild.example.", "x.other.example.", "api.wild.example."} {
		text(t, s.ask(t, ask(t, name, a)))
	}
	asked, refused = h.told()
	same(t, "asked", asked, "none0.wild.example", "x.other.example", "api.wild.example")
	same(t, "refused", refused)
}

// TestTooManyBytesBelow: and by their bytes, of all wildcards together.
func TestTooManyBytesBelow(t *testing.T) {
	s, h := newServer(t, "*.wild.example", "*.other.example")
	label := strings.Repeat("x", 62)
	for i := range 32 { // 64 bytes each: 2048
		name := fmt.Sprintf("%s.%s.example.", label[:60]+fmt.Sprintf(".%03d", i), []string{"wild", "other"}[i%2])
		if got := text(t, s.ask(t, ask(t, name, a))); !strings.HasPrefix(got, "Success "+name+" ") {
			t.Fatal(got)
		}
	}
	h.told()
	if got := text(t, s.ask(t, ask(t, "x.wild.example.", aaaa))); got != "Refused x.wild.example." {
		t.Error(got)
	}
	asked, refused := h.told()
	same(t, "asked", asked)
	same(t, "refused", refused, `"x.wild.example" 0 too many bytes of names below wildcards`)
}

// TestTooManyNames: a full table refuses, and says so.
func TestTooManyNames(t *testing.T) {
	s, h := newServer(t, "a.example")
	for i := range names.Max {
		s.Table.For(fmt.Sprint(i))
	}
	if got := text(t, s.ask(t, ask(t, "a.example.", a))); got != "Refused a.example." {
		t.Error(got)
	}
	_, refused := h.told()
	same(t, "refused", refused, `"a.example" 0 too many names`)
}

func TestReversed(t *testing.T) {
	for name, want := range map[string]string{
		"4.3.2.1.in-addr.arpa.": "1.2.3.4",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.B.D.0.1.0.0.2.ip6.arpa.": "2001:db8::1",
		"3.2.1.in-addr.arpa.": "", "5.4.3.2.1.in-addr.arpa.": "", "04.3.2.1.in-addr.arpa.": "", "256.3.2.1.in-addr.arpa.": "", "in-addr.arpa.": "",
		"g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.":   "",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0x2.ip6.arpa.":   "",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.ip6.arpa.":     "",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.3.ip6.arpa.": "",
		".ip6.arpa.": "", ".": "", "4.3.2.1.in-addr.arpa.example.": "",
	} {
		got, ok := reversed(name)
		if ok != (want != "") || ok && got != netip.MustParseAddr(want) {
			t.Errorf("reversed(%q) = %v, %v", name, got, ok)
		}
	}
}

// TestPace: of more than 100 queries in 50 ms each waits for the window's end.
func TestPace(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	for i := range perWindow {
		if d := p.delay(now); d != 0 {
			t.Fatalf("query %d waits %v", i, d)
		}
	}
	if d := p.delay(now.Add(20 * time.Millisecond)); d != 30*time.Millisecond {
		t.Errorf("one too many waits %v", d)
	}
	if d := p.delay(now.Add(window)); d != 0 {
		t.Errorf("the first of the next window waits %v", d)
	}
}
