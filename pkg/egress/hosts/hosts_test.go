package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, values ...string) *List {
	t.Helper()
	l, err := Parse(values)
	if err != nil {
		t.Fatalf("Parse(%q): %v", values, err)
	}
	return l
}

// TestSpellings: each value has one spelling, which Parse takes for the same.
func TestSpellings(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, c := range []struct{ value, want string }{
		{"example.org", "example.org:443"},
		{"Example.ORG.:8443", "example.org:8443"},
		{"example.org:1", "example.org:1"},
		{"example.org:65535", "example.org:65535"},
		{"*.Example.org", "*.example.org:443"},
		{"*.example.org.:80", "*.example.org:80"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example:443"},
		{"_dmarc.my_host.example", "_dmarc.my_host.example:443"},
		{"r3---sn-a.example", "r3---sn-a.example:443"},
		{"gitea:3000", "gitea:3000"},
		{"1.2.3.4.example", "1.2.3.4.example:443"},
		{"0x7f.example", "0x7f.example:443"},
		{"a.0x7g", "a.0x7g:443"},
		{long + ".example", long + ".example:443"},
		{"127.0.0.1:8080", "127.0.0.1:8080"},
		{"169.254.169.254:80", "169.254.169.254:80"},
		{"93.184.216.34", "93.184.216.34:443"},
		{"93.184.216.34/32", "93.184.216.34:443"},
		{"10.0.0.0/8:5432", "10.0.0.0/8:5432"},
		{"::1", "[::1]:443"},
		{"[::1]:8080", "[::1]:8080"},
		{"2001:DB8:0:0::1", "[2001:db8::1]:443"},
		{"[2001:db8::1]", "[2001:db8::1]:443"},
		{"2001:db8::/32", "[2001:db8::/32]:443"},
		{"[2001:db8::/48]:22", "[2001:db8::/48]:22"},
		{"2001:db8::1/128", "[2001:db8::1]:443"},
		{"127.0.0.1:54", "127.0.0.1:54"},
		{"dns.example:53", "dns.example:53"},
	} {
		got := parse(t, c.value).Strings()
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q is %q, want %q", c.value, got, c.want)
		}
		if again := parse(t, got...).Strings(); !slices.Equal(again, got) {
			t.Errorf("%q is %q the second time", got, again)
		}
	}
}

func TestOrderAndDuplicates(t *testing.T) {
	l := parse(t, "b.example:80", "10.0.0.0/8:22", "A.example", "a.example.:443", "10.0.0.0/8", "::1", "*.a.example:80")
	want := []string{"*.a.example:80", "10.0.0.0/8:22", "10.0.0.0/8:443", "[::1]:443", "a.example:443", "b.example:80"}
	if got := l.Strings(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := l.Ports(); !slices.Equal(got, []uint16{22, 80, 443}) {
		t.Errorf("ports %v", got)
	}
	if got := fmt.Sprint(l.Prefixes()); got != "[10.0.0.0/8 ::1/128]" {
		t.Errorf("prefixes %s", got)
	}
}

func TestAllowsName(t *testing.T) {
	l := parse(t, "example.org", "*.wild.example:8443", "api.wild.example:22", "*.deep.wild.example", "10.0.0.0/8")
	for _, c := range []struct {
		name string
		port uint16
		want bool
	}{
		{"example.org", 443, true},
		{"example.org", 80, false},
		{"example.org", 0, false},
		{"www.example.org", 443, false},
		{"notexample.org", 443, false},
		{"example.org.evil.example", 443, false},
		{"Example.org", 443, false}, // not canonical
		{"example.org.", 443, false},
		{"example.org\x00", 443, false},
		{"wild.example", 8443, false},
		{"a.wild.example", 8443, true},
		{"a.b.c.wild.example", 8443, true},
		{"a.wild.example", 443, false},
		{"awild.example", 8443, false},
		{".wild.example", 8443, false},
		{"a..wild.example", 8443, false},
		{"a\x00.wild.example", 8443, false},
		{"a b.wild.example", 8443, false},
		{"*.wild.example", 8443, false},
		{"api.wild.example", 8443, true},
		{"api.wild.example", 22, true},
		{"x.deep.wild.example", 443, true},
		{"x.deep.wild.example", 8443, true},
		{"10.0.0.1", 443, false},
		{"", 443, false},
	} {
		if got := l.AllowsName(c.name, c.port); got != c.want {
			t.Errorf("AllowsName(%q, %d) = %v", c.name, c.port, got)
		}
		if c.want && !l.AllowsAnyPort(c.name) {
			t.Errorf("AllowsAnyPort(%q) = false", c.name)
		}
	}
	for name, want := range map[string]bool{"api.wild.example": true, "wild.example": false, "evil.example": false, "a\x00.wild.example": false} {
		if got := l.AllowsAnyPort(name); got != want {
			t.Errorf("AllowsAnyPort(%q) = %v", name, got)
		}
	}
	for name, want := range map[string]string{
		"a.wild.example": "wild.example", "x.deep.wild.example": "deep.wild.example", "deep.wild.example": "wild.example",
		"api.wild.example": "", "example.org": "", "evil.example": "", "A.wild.example": "",
	} {
		if got, ok := l.Below(name); got != want || ok != (want != "") {
			t.Errorf("Below(%q) = %q, %v", name, got, ok)
		}
	}
}

func TestAllowsAddr(t *testing.T) {
	l := parse(t, "10.0.0.0/8:22", "127.0.0.1:8080", "[2001:db8::/32]:443", "169.254.0.0/16:80", "169.254.170.2:80", "example.org")
	for _, c := range []struct {
		addr string
		port uint16
		want bool
	}{
		{"10.255.0.1", 22, true},
		{"10.255.0.1", 443, false},
		{"11.0.0.1", 22, false},
		{"127.0.0.1", 8080, true},
		{"127.0.0.2", 8080, false},
		{"2001:db8:ffff::1", 443, true},
		{"2001:db9::1", 443, false},
		{"::ffff:127.0.0.1", 8080, false},
		{"2001:db8::1%eth0", 443, false},
		{"169.254.1.1", 80, true},
		{"169.254.169.254", 80, false}, // a network does not name it
		{"169.254.170.2", 80, true},    // named by itself
	} {
		if got := l.AllowsAddr(netip.MustParseAddr(c.addr), c.port); got != c.want {
			t.Errorf("AllowsAddr(%s, %d) = %v", c.addr, c.port, got)
		}
	}
	if l.AllowsAddr(netip.Addr{}, 22) {
		t.Error("no address is allowed")
	}
}

// A list that is missing allows nothing.
func TestNoList(t *testing.T) {
	for _, l := range []*List{nil, {}} {
		_, below := l.Below("example.org")
		if l.AllowsName("example.org", 443) || l.AllowsAnyPort("example.org") || below ||
			l.AllowsAddr(netip.MustParseAddr("93.184.216.34"), 443) ||
			len(l.Ports()) != 0 || len(l.Prefixes()) != 0 || len(l.Strings()) != 0 || len(l.Rules()) != 0 {
			t.Errorf("%#v allows something", l)
		}
	}
}

func TestCanonical(t *testing.T) {
	label := strings.Repeat("a", 63)
	most := strings.Join([]string{label, label, label, strings.Repeat("a", 61)}, ".")
	for raw, want := range map[string]string{
		"Example.Org": "example.org", "example.org.": "example.org", "A": "a", "_x.y-z.9a": "_x.y-z.9a", "xn--A.b": "xn--a.b",
		most: most, most + ".": most, strings.ToUpper(most): most, label + ".b": label + ".b", "0x.a": "0x.a", "a.0xz": "a.0xz",
	} {
		if got, ok := Canonical(raw); got != want || !ok {
			t.Errorf("Canonical(%q) = %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{
		"", ".", "..", "a..", ".a", "a..b", "a b", "a\x00", "a\x00.b", "a/b", "a:b", "a\\046b", "*.a", "bücher.example", "\u212aelvin.example",
		"-a.b", "a-.b", "a.-b", most + "a", most + "..", label + "a.b", strings.Repeat("a.", 200),
		"127.0.0.1", "127.1", "2130706433", "0x7f.1", "0X7F.0X1", "0x7f000001", "1.2.3", "017700000001", "a.0x", "a.1", "1.", "0x.0x", "::1",
	} {
		if got, ok := Canonical(raw); ok || got != "" {
			t.Errorf("Canonical(%q) = %q, %v", raw, got, ok)
		}
	}
}

func TestBy(t *testing.T) {
	list, err := Parse([]string{"a.example:80", "a.example", "*.b.example", "192.0.2.0/24:80", "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, to, want string }{
		{"a.example", "198.18.1.1:80", "a.example:80"}, {"a.example", "198.18.1.1:443", "a.example:443"}, {"a.example", "198.18.1.1:81", ""},
		{"x.y.b.example", "198.18.1.2:443", "*.b.example:443"}, {"c.example", "192.0.2.1:443", ""},
		{"", "192.0.2.1:443", "192.0.2.1:443"}, {"", "192.0.2.1:80", "192.0.2.0/24:80"}, {"", "192.0.2.2:443", ""},
	} {
		if got := list.By(c.name, netip.MustParseAddrPort(c.to)); got != c.want {
			t.Errorf("By(%q, %s) = %q, want %q", c.name, c.to, got, c.want)
		}
	}
	var none *List
	if got := none.By("a.example", netip.AddrPort{}); got != "" {
		t.Errorf("no list allows by %q", got)
	}
}
