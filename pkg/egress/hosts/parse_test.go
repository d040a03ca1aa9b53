package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sandglass/internal/refusal"
)

// refused is the refusal of the values.
func refused(t *testing.T, values ...string) *refusal.Error {
	t.Helper()
	l, err := Parse(values)
	var r *refusal.Error
	if l != nil || !errors.As(err, &r) {
		t.Fatalf("Parse(%q) = %v, %v: want a refusal", values, l.Strings(), err)
	}
	return r
}

const (
	hintPort = "--allow-host example.org:443"
	hintTwo  = "--allow-host example.org:80 --allow-host example.org:443"
	hintStar = "--allow-host '*.example.org'"
	hintSix  = "--allow-host '[2001:db8::1]:443'"
	badPort  = ": the port is a number from 1 to 65535, one for each rule"
	number   = " is neither a name nor an address: a number stands at its end"
	noAddr   = " is no address and no network"
)

func TestRefusals(t *testing.T) {
	a64 := strings.Repeat("a", 64)
	hintNet := []string{"--allow-host 192.0.2.0/24:443", "--allow-host '[2001:db8::/32]:443'"}
	for _, c := range []struct {
		value, what string
		hints       []string
	}{
		{"", "an empty value", []string{"--allow-host example.org"}},
		{":443", ":443 has no host", []string{hintPort}},
		{"https://example.org/x", "https://example.org/x is a URL: the name and the port alone are compared, never the path", []string{"--allow-host example.org"}},
		{"http://[::1]:80/", "http://[::1]:80/ is a URL: the name and the port alone are compared, never the path", []string{"--allow-host '[::1]:80'"}},
		{"http://*/", "http://*/ is a URL: the name and the port alone are compared, never the path", []string{"--allow-host example.org"}},
		{"a.example,b.example", "a.example,b.example is not one host", []string{"--allow-host a.example --allow-host b.example"}},
		{"git@example.org", "git@example.org has a user in it", []string{"--allow-host example.org:22"}},
		{"example.org/path", "example.org/path has a path in it: the name and the port alone are compared", []string{"--allow-host example.org"}},

		{"example.org:", "example.org:" + badPort, []string{hintPort}},
		{"example.org:*", "example.org:*" + badPort, []string{hintTwo}},
		{"example.org:80-90", "example.org:80-90" + badPort, []string{"--allow-host example.org:80 --allow-host example.org:90"}},
		{"example.org:0", "example.org:0" + badPort, []string{hintPort}},
		{"example.org:65536", "example.org:65536" + badPort, []string{hintPort}},
		{"example.org:0443", "example.org:0443" + badPort, []string{hintPort}},
		{"example.org:+443", "example.org:+443" + badPort, []string{hintPort}},
		{"example.org:https", "example.org:https" + badPort, []string{hintPort}},
		{"[::1]:", "[::1]:" + badPort, []string{"--allow-host '[::1]:443'"}},
		{"[::1", "[::1: an IPv6 address stands in the brackets, and a port behind them", []string{"--allow-host '[::1]'"}},
		{"[::1]443", "[::1]443: an IPv6 address stands in the brackets, and a port behind them", []string{"--allow-host '[::1]:443'"}},
		{"[127.0.0.1]:443", "[127.0.0.1]:443: an IPv6 address stands in the brackets, and a port behind them", []string{"--allow-host 127.0.0.1:443"}},
		{"[example.org]:443", "[example.org]:443: an IPv6 address stands in the brackets, and a port behind them", []string{hintPort}},
		{"example.org:80:90", "example.org:80:90" + noAddr, hintNet},

		{"*", "*: the list cannot mean every host", []string{hintStar}},
		{"*:443", "*:443: the list cannot mean every host", []string{hintStar}},
		{"a.*.example", "a.*.example: a star stands for whole parts at the front of a name only", []string{hintStar}},
		{"a*.example.org", "a*.example.org: a star stands for whole parts at the front of a name only", []string{hintStar}},
		{"*.*.example.org", "*.*.example.org: a star stands for whole parts at the front of a name only", []string{hintStar}},
		{"*.", "*. has an empty part", []string{hintPort}},
		{"*.com", "*.com is too wide: at least two parts stand behind the star", []string{"--allow-host '*.example.com'"}},
		{"*.com.", "*.com. is too wide: at least two parts stand behind the star", []string{"--allow-host '*.example.com'"}},
		{"*.0.0.1", "*.0.0.1" + number, []string{hintPort}},

		{".", ". has an empty part", []string{hintPort}},
		{"a..example", "a..example has an empty part", []string{hintPort}},
		{"example.org..", "example.org.. has an empty part", []string{hintPort}},
		{a64 + ".example", a64 + ".example has a part of more than 63 bytes", []string{hintPort}},
		{strings.Repeat("a.", 126) + "bc", strings.Repeat("a.", 126) + "bc is longer than the 253 bytes of a name", []string{hintPort}},
		{"-a.example", "-a.example has a hyphen at an end of a part", []string{hintPort}},
		{"a\x00.example", `"a\x00.example" has a character that no host name has`, []string{hintPort}},
		{"a\x1b[2J.example", `"a\x1b[2J.example" has a character that no host name has`, []string{hintPort}},
		{"b\xfc.example", `"b\xfc.example" is not in ASCII`, []string{hintPort}},
		{"bücher.example", "bücher.example is not in ASCII: its form in punycode (xn--…) is needed",
			[]string{`python3 -c 'import sys; print(sys.argv[1].encode("idna").decode())' 'bücher.example'`}},

		{"2130706433", "2130706433" + number, []string{hintPort}},
		{"127.1", "127.1" + number, []string{hintPort}},
		{"0x7f.1:80", "0x7f.1:80" + number, []string{hintPort}},
		{"1.2.3", "1.2.3" + number, []string{hintPort}},
		{"0x7f000001", "0x7f000001" + number, []string{hintPort}},
		{"127.0.0.01", "127.0.0.01" + number, []string{hintPort}},
		{"1.2.3.4.5", "1.2.3.4.5" + number, []string{hintPort}},

		{"localhost:8080", "localhost:8080 means the host itself, which is named by its address only", []string{"--allow-host 127.0.0.1:8080"}},
		{"LocalHost.", "LocalHost. means the host itself, which is named by its address only", []string{"--allow-host 127.0.0.1:443"}},
		{"ip6-loopback", "ip6-loopback means the host itself, which is named by its address only", []string{"--allow-host 127.0.0.1:443"}},
		{"a.localhost", "a.localhost means the host itself, which is named by its address only", []string{"--allow-host 127.0.0.1:443"}},
		{"*.localhost", "*.localhost means the host itself, which is named by its address only", []string{"--allow-host 127.0.0.1:443"}},

		{"fe80::1%eth0", "fe80::1%eth0 has a zone: an address of one link of the host cannot be listed", nil},
		{"[fe80::1%25eth0]:80", "[fe80::1%25eth0]:80 has a zone: an address of one link of the host cannot be listed", nil},
		{"::ffff:127.0.0.1", "::ffff:127.0.0.1 is an IPv4 address in the form of an IPv6 one", []string{"--allow-host 127.0.0.1:443"}},
		{"::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104 is an IPv4 address in the form of an IPv6 one", nil},
		{"10.0.0.1/8", "10.0.0.1/8 has bits of a host behind its 8 bits of network", []string{"--allow-host 10.0.0.0/8:443"}},
		{"2001:db8::1/32", "2001:db8::1/32 has bits of a host behind its 32 bits of network", []string{"--allow-host '[2001:db8::/32]:443'"}},
		{"0.0.0.0/0", "0.0.0.0/0 is too wide: at least /8", []string{hintPort}},
		{"::/0", "::/0 is too wide: at least /32", []string{hintPort}},
		{"10.0.0.0/7", "10.0.0.0/7 is too wide: at least /8", []string{hintPort}},
		{"2001::/31", "2001::/31 is too wide: at least /32", []string{hintPort}},
		{"10.0.0.0/33", "10.0.0.0/33" + noAddr, hintNet},
		{"10.0.0.0/08", "10.0.0.0/08" + noAddr, hintNet},

		{"0.0.0.0:80", "0.0.0.0:80 cannot be reached: 0.0.0.0/8 is no host", nil},
		{"0.0.0.0/8", "0.0.0.0/8 cannot be reached: 0.0.0.0/8 is no host", nil},
		{"::", ":: cannot be reached: it is no host", nil},
		{"224.0.0.1", "224.0.0.1 cannot be reached: 224.0.0.0/4 is multicast", nil},
		{"255.255.255.255", "255.255.255.255 cannot be reached: 255.255.255.255 is broadcast", nil},
		{"fe80::1", "fe80::1 cannot be reached: fe80::/10 needs a zone, an address of one link", nil},
		{"ff02::1", "ff02::1 cannot be reached: ff00::/8 is multicast", nil},
		{"198.18.0.1", "198.18.0.1 cannot be reached: 198.18.0.0/15 stands for the listed names inside", nil},
		{"198.0.0.0/8", "198.0.0.0/8 cannot be reached: 198.18.0.0/15 stands for the listed names inside", nil},
		{"fd73:616e:6467::1", "fd73:616e:6467::1 cannot be reached: fd73:616e:6467::/64 stands for the listed names inside", nil},
		{"127.0.0.1:53", "127.0.0.1:53 cannot be reached: 127.0.0.1:53 is the sandbox's own resolver inside", nil},
		{"127.0.0.0/8:53", "127.0.0.0/8:53 cannot be reached: 127.0.0.1:53 is the sandbox's own resolver inside", nil},
		{"[::1]:53", "[::1]:53 cannot be reached: [::1]:53 is the sandbox's own resolver inside", nil},
	} {
		r := refused(t, c.value)
		if r.What != "--allow-host: "+c.what || !slices.Equal(r.Hints, c.hints) || r.Exit != refusal.ExitRefused {
			t.Errorf("%q:\n got %s %q\nwant --allow-host: %s %q", c.value, r.What, r.Hints, c.what, c.hints)
		}
		if r := refused(t, "example.org", c.value); r.What != "--allow-host: "+c.what {
			t.Errorf("%q beside a good one: %s", c.value, r.What)
		}
	}
}

// What is pasted from a hint is what was meant, and is accepted.
func TestMeant(t *testing.T) {
	for _, c := range []struct {
		value string
		want  string // the values of the hint; of an example "…"
	}{
		{"https://api.example.org/v1?x=1", "api.example.org"},
		{"http://api.example.org/", "api.example.org:80"},
		{"HTTP://api.example.org:8080", "api.example.org:8080"},
		{"http://[2001:db8::1]/", "'[2001:db8::1]:80'"},
		{"ssh://git@git.example.org/repo", "git.example.org:22"},
		{"https://user:secret@api.example.org#top", "api.example.org"},
		{"https://*/", "…"},
		{"https://localhost/", "…"},
		{"git@git.example.org:owner/repo.git", "git.example.org:22"},
		{"git@git.example.org:2222", "git.example.org:2222"},
		{"a.example,b.example:8443", "a.example b.example:8443"},
		{"a.example b.example", "a.example b.example"},
		{"a.example:80,443", "a.example:80 a.example:443"},
		{"a.example,80", "a.example a.example:80"},
		{"80,a.example", "…"},
		{",", "…"},
		{"a,b,c,d,e,f,g,h,i", "…"},
		{"api.example.org:https", "api.example.org:443"},
		{"api.example.org:http", "api.example.org:80"},
		{"api.example.org:ssh", "api.example.org:22"},
		{"api.example.org:", "api.example.org:443"},
		{"api.example.org:0", "api.example.org:443"},
		{"api.example.org:08080", "api.example.org:8080"},
		{"api.example.org:8443/tcp", "api.example.org:8443"},
		{"api.example.org:53/udp", "…"},
		{"api.example.org:70000", "api.example.org:443"},
		{"api.example.org:*", "api.example.org:80 api.example.org:443"},
		{"api.example.org:80-90", "api.example.org:80 api.example.org:90"},
		{"api.example.org:90-", "…"},
		{"api.example.org/v1", "api.example.org"},
		{"tcp/api.example.org:443", "…"},
		{".example.org", "'*.example.org'"},
		{".example.org:8443", "'*.example.org:8443'"},
		{".org", "…"},
		{"[api.example.org]:8443", "api.example.org:8443"},
		{"[2001:db8::1]8443", "'[2001:db8::1]:8443'"},
		{"2001:db8::/32:8443", "'[2001:db8::/32]:8443'"},
		{"fd00::/8:443", "…"},
		{"10.0.0.\x10/8:22", "…"}, // was meant, and refused, for ever
		{"10.0.0.1/8:8443", "10.0.0.0/8:8443"},
		{"[::ffff:10.0.0.1]:8443", "10.0.0.1:8443"},
	} {
		r := refused(t, c.value)
		if len(r.Hints) == 0 {
			t.Errorf("%q: no hint: %s", c.value, r.What)
			continue
		}
		var got []string
		for _, v := range strings.Split(r.Hints[0], "--allow-host ")[1:] {
			v = strings.TrimSpace(v)
			got = append(got, v)
			if _, err := Parse([]string{strings.Trim(v, "'")}); err != nil {
				t.Errorf("%q: the hint %s is refused: %v", c.value, v, err)
			}
		}
		example := strings.Contains(r.Hints[0], "example.org") && !strings.Contains(c.value, "example.org") ||
			slices.Contains([]string{hintPort, hintTwo, hintStar, "--allow-host 192.0.2.0/24:443", "--allow-host '[2001:db8::/32]:443'"}, r.Hints[0])
		if text := strings.Join(got, " "); c.want == "…" && !example || c.want != "…" && text != c.want {
			t.Errorf("%q: %q, want %q", c.value, r.Hints, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	if r := refused(t); r.What != "--allow-host: the list of hosts is empty" {
		t.Error(r.What)
	}
	var rules, ports []string
	for i := range MaxRules + 1 {
		rules = append(rules, fmt.Sprintf("h%d.example", i))
	}
	for i := range MaxPorts + 1 {
		ports = append(ports, fmt.Sprintf("example.org:%d", i+1))
	}
	if r := refused(t, rules...); r.What != "--allow-host: 65 hosts are too many: at most 64" {
		t.Error(r.What)
	}
	if r := refused(t, ports...); r.What != "--allow-host: 17 different ports are too many: at most 16" {
		t.Error(r.What)
	}
	if n := len(parse(t, rules[:MaxRules]...).Strings()); n != 64 {
		t.Errorf("%d rules", n)
	}
	if n := len(parse(t, ports[:MaxPorts]...).Ports()); n != 16 {
		t.Errorf("%d ports", n)
	}
	long := refused(t, strings.Repeat("a", 1<<20))
	if len(long.What) > 400 {
		t.Errorf("a long value is told in %d bytes", len(long.What))
	}
}

// FuzzParse: whatever the value, it is refused in one printable line, or is a
// rule with one spelling and within the bounds.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"example.org", "*.example.org:8443", "10.0.0.0/8:22", "[2001:db8::/32]:443", "::1", "[::1]:8080", "127.1", "0x7f.1", "a\x00b", "bücher.example",
		"https://a.example/b", "localhost", "::ffff:1.2.3.4", "fe80::1%lo", "*", "*.com", "example.org:80-90", "_a.b.", "1.2.3.4/32",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		l, err := Parse([]string{value})
		if err != nil {
			var r *refusal.Error
			if !errors.As(err, &r) {
				t.Fatalf("%q: %v is no refusal", value, err)
			}
			for _, line := range append(r.Hints, r.What) {
				if strings.ContainsFunc(line, unicode.IsControl) {
					t.Errorf("%q is told as %q", value, line)
				}
			}
			return
		}
		checkList(t, value, l)
	})
}

func checkList(t *testing.T, value string, l *List) {
	s := l.Strings()
	again, err := Parse(s)
	if err != nil || len(s) != 1 || !slices.Equal(again.Rules(), l.Rules()) {
		t.Fatalf("%q is %q, and that is %v, %v", value, s, again.Strings(), err)
	}
	r := l.Rules()[0]
	switch {
	case r.Port == 0:
		t.Errorf("%q has no port", value)
	case r.Name == "":
		if r.Prefix.Addr().Is4In6() || r.Prefix.Addr().Zone() != "" || r.Prefix.Masked() != r.Prefix ||
			r.Prefix.Bits() < 8 || r.Prefix.Addr().Is6() && r.Prefix.Bits() < 32 {
			t.Errorf("%q is the network %v", value, r.Prefix)
		}
	case !canonical(r.Name) || r.Wildcard && !strings.Contains(r.Name, "."):
		t.Errorf("%q is the name %q", value, r.Name)
	case l.AllowsName(r.Name, r.Port) == r.Wildcard, l.AllowsName("a."+r.Name, r.Port) != (r.Wildcard && len(r.Name) <= 251):
		t.Errorf("%q allows the wrong of %q and a name below it", value, r.Name)
	}
}

// FuzzCanonical: one spelling of a name is the canonical one of itself, and has
// only what host names have.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"Example.org.", "a\x00.b", "0x7f.1", "xn--a.b", "_a.B", "127.0.0.1", ".", "\u212a.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, ok := Canonical(raw)
		if !ok {
			if name != "" {
				t.Errorf("%q is refused as %q", raw, name)
			}
			return
		}
		if !canonical(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || len(name) > 253 ||
			!strings.EqualFold(name, strings.TrimSuffix(raw, ".")) {
			t.Errorf("%q is %q", raw, name)
		}
	})
}
