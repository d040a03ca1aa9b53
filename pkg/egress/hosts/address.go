package hosts

import (
	"net/netip"
	"strings"
	"sync"

	"sandglass/internal/refusal"
	"sandglass/pkg/egress/names"
)

// The widest networks of a short list.
const (
	widest4 = 8
	widest6 = 32
)

// addrRule is a rule of an address or a network.
func addrRule(value, host string, port uint16) (Rule, error) {
	if strings.Contains(host, "%") {
		return Rule{}, refuse("%s has a zone: an address of one link of the host cannot be listed", word(value))
	}
	prefix, err := parsePrefix(host)
	if name, _, path := strings.Cut(host, "/"); path && badName(name) == "" && strings.Contains(name, ".") {
		return Rule{}, instead(refuse("%s has a path in it: the name and the port alone are compared", word(value)),
			"--allow-host example.org", strings.Replace(value, host, name, 1))
	}
	if meant := unbracketed(value); err != nil && meant != "" {
		return Rule{}, instead(refuse("%s: a port stands behind brackets", word(value)), "--allow-host '[2001:db8::/32]:443'", meant)
	}
	if err != nil {
		return Rule{}, refuse("%s is no address and no network", word(value)).
			Hint("--allow-host 192.0.2.0/24:443").Hint("--allow-host '[2001:db8::/32]:443'")
	}
	if err := checkPrefix(value, prefix, port); err != nil {
		return Rule{}, err
	}
	for _, t := range taken() {
		if t.prefix.Overlaps(prefix) && (t.port == 0 || t.port == port) {
			return Rule{}, refuse("%s cannot be reached: %s", word(value), t.why)
		}
	}
	return Rule{Prefix: prefix, Port: port}, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

func checkPrefix(value string, p netip.Prefix, port uint16) *refusal.Error {
	a, widest := p.Addr(), widest4
	if a.Is6() {
		widest = widest6
	}
	switch {
	case a.Is4In6():
		err := refuse("%s is an IPv4 address in the form of an IPv6 one", word(value))
		if p.IsSingleIP() {
			err.Hint("--allow-host %s", netip.AddrPortFrom(a.Unmap(), port))
		}
		return err
	case p.Bits() < widest:
		return refuse("%s is too wide: at least /%d", word(value), widest).Hint("--allow-host example.org:443")
	case p.Masked() != p:
		return refuse("%s has bits of a host behind its %d bits of network", word(value), p.Bits()).
			Hint("--allow-host %s", refusal.Shell(Rule{Prefix: p.Masked(), Port: port}.String()))
	}
	return nil
}

// reserved is what no rule may be about.
type reserved struct {
	prefix netip.Prefix
	port   uint16 // 0: all
	why    string
}

// taken are addresses that no TCP connection goes to, and those that mean
// something else inside: a rule for one would look as if it did something.
var taken = sync.OnceValue(func() []reserved {
	return []reserved{
		{v4(0, 0, 0, 0, 8), 0, "0.0.0.0/8 is no host"},
		{v4(224, 0, 0, 0, 4), 0, "224.0.0.0/4 is multicast"},
		{v4(255, 255, 255, 255, 32), 0, "255.255.255.255 is broadcast"},
		{netip.PrefixFrom(netip.IPv6Unspecified(), 128), 0, "it is no host"},
		{v6(0xfe, 0x80, 10), 0, "fe80::/10 needs a zone, an address of one link"},
		{v6(0xff, 0, 8), 0, "ff00::/8 is multicast"},
		{names.V4, 0, names.V4.String() + " stands for the listed names inside"},
		{names.V6, 0, names.V6.String() + " stands for the listed names inside"},
		{v4(127, 0, 0, 1, 32), 53, "127.0.0.1:53 is the sandbox's own resolver inside"},
		{netip.PrefixFrom(netip.IPv6Loopback(), 128), 53, "[::1]:53 is the sandbox's own resolver inside"},
	}
})

func v4(a, b, c, d byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)
}

func v6(a, b byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{a, b}), bits)
}
