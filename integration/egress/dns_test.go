package egress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// TestNamesInside: each kind of question, and each odd name.
func TestNamesInside(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		a63 := strings.Repeat("a", 63)
		o := w.attempt(t, who, allow("v4.good.example", "nothere.example", "fail.example", "_srv.good.example", "xn--bcher-kva.example", "*.wild.example"), slices.Concat(
			all("NOERROR 1", "dns v4.good.example A", "dns V4.GOOD.EXAMPLE A", "dns v4.good.example. A", "dns v4.good.example AAAA",
				"dns _srv.good.example A", "dns xn--bcher-kva.example A", "dns a.wild.example A", "dns b.a.wild.example AAAA"),
			all("NOERROR 0", "dns v4.good.example TXT", "dns v4.good.example MX", "dns v4.good.example HTTPS", "dns v4.good.example SVCB",
				"dns v4.good.example ANY", "dns v4.good.example SRV", "dns v4.good.example NS", "dns v4.good.example CNAME"),
			all("NXDOMAIN 0", "dns other.example A", "dns other.example TXT", "dns good.example A", "dns x.v4.good.example A", "dns example A",
				"dns wild.example A", "dns . A", "dns nothere.example A", "dns localhost A", "dns 34.216.184.93.in-addr.arpa PTR",
				"dns v4.good.example.evil.example A", "dns ev\x69lv4.good.example A"),
			all("SERVFAIL 0", "dns fail.example A"),
			// A NUL, a dot and a space inside a label; labels and names that are too long.
			all("NXDOMAIN 0", "dnshex 0376340004676f6f64076578616d706c6500 A", "dnshex 0376342004676f6f64076578616d706c6500 A"),
			all("FORMERR 0", "dnshex 0776342e676f6f64076578616d706c6500 A", "dnshex 0f76342e676f6f642e6578616d706c6500 A"),
			[]try{{"dns " + a63 + ".wild.example A", "NXDOMAIN 0"}, {"dns " + strings.Join([]string{a63, a63, a63, a63}, ".") + " A", "FORMERR 0 or silence"}},
			[]try{{"named fail.example 443", "EAI_AGAIN"}, {"named nothere.example 443", "EAI_NONAME"}},
		)...)
		want := []string{"_srv.good.example", "a.wild.example", a63 + ".wild.example", "b.a.wild.example", "fail.example", "nothere.example", "v4.good.example", "xn--bcher-kva.example"}
		if got := w.names.questions(); !slices.Equal(got, want) {
			t.Errorf("asked outside: %q, want %q", got, want)
		}
		w.wire.only(t)
		connections(t, o)
	})
}

// TestNamesCarryNothingOut: a query for what is not listed never leaves, and
// below a wildcard there is a bound.
func TestNamesCarryNothingOut(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		printed(t, w.python(t, who, "flood.py", allow("good.example"), "tunnel", "evil.example", "400", "60"), "[(3, 400)]\n")
		if got := w.names.questions(); len(got) != 0 {
			t.Errorf("asked outside: %q", got)
		}
		w.wire.only(t)
		printed(t, w.python(t, who, "flood.py", allow("*.deep.example"), "tunnel", "deep.example", "150", "10"), "[(0, 100), (5, 50)]\n")
		if got := w.names.questions(); len(got) != 100 {
			t.Errorf("%d names asked outside, want 100", len(got))
		}
		// 34 of 60 bytes are 2040.
		printed(t, w.python(t, who, "flood.py", allow("*.deep.example"), "tunnel", "deep.example", "150", "60"), "[(0, 34), (5, 116)]\n")
		if got := w.names.questions(); len(got) != 34 {
			t.Errorf("%d names asked outside, want 34", len(got))
		}
	})
}

// TestMalformedQuestions: thousands of them end neither the name server nor the
// run, and what comes back is no more than what was sent.
func TestMalformedQuestions(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		printed(t, w.python(t, who, "flood.py", append(allow("v4.good.example"), "--timeout", "60s"), "malformed", "6000"), "bounded\nafterwards 0\n")
		for _, name := range w.names.questions() {
			if name != "v4.good.example" {
				t.Errorf("asked outside: %q", name)
			}
		}
	})
}

// TestDeadNameServer: where the first of the host's name servers is silent the
// second is asked, as for the host's own programs.
func TestDeadNameServer(t *testing.T) {
	w := newWorld(t)
	w.enter(t)
	w.hostFiles("nameserver "+dead4+"\nnameserver "+server+"\n", "")
	o := w.attempt(t, testkit.AsRoot(t), allow("v4.good.example:80"), try{"named v4.good.example 80", "data"})
	connections(t, o, "v4.good.example:80 "+good4+" closed")
}

// TestRebinding: the name's address is public when the program asks, and private
// when it connects.
func TestRebinding(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "half a minute", "-short")
	}
	w := newWorld(t)
	// The supervisor remembers an answer for half a minute: once is enough.
	t.Run("user", func(t *testing.T) {
		who := testkit.AsUser(t)
		w.enter(t)
		trap := w.trap(t, "127.0.0.1:80")
		for i, to := range []string{"127.0.0.1", private4, metadata, ula6, nat64} {
			w.names.mu.Lock()
			w.names.zones[fmt.Sprintf("r%d.example", i)] = func(n int) answer {
				if n <= 2 { // A and AAAA
					return answer{Addrs: addrs(good4)}
				}
				return answer{Addrs: addrs(to)}
			}
			w.names.mu.Unlock()
		}
		o := w.python(t, who, "rebind.py", append(allow("r0.example:80", "r1.example:80", "r2.example:80", "r3.example:80", "r4.example:80"), "--timeout", "90s"), "31", "5")
		printed(t, o, strings.Repeat("data\n", 5)+strings.Repeat("ECONNRESET\n", 5))
		w.wire.only(t, "tcp "+good4+":80")
		trap.nobody(t, "127.0.0.1 of the host")
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprintf("r%d.example:80 %s closed", i, good4), fmt.Sprintf("r%d.example:80  private", i))
		}
		connections(t, o, want...)
	})
}
