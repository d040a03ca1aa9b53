package reach

import (
	"net/netip"
	"testing"

	"sandglass/pkg/egress/names"
)

func TestRefused(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0": "this host on this network (RFC 791)", "0.255.255.255": "this host on this network (RFC 791)",
		"10.0.0.1": "private (RFC 1918)", "172.16.0.1": "private (RFC 1918)", "172.31.255.255": "private (RFC 1918)", "192.168.255.1": "private (RFC 1918)",
		"100.64.0.1": "shared address space (RFC 6598)", "100.127.255.255": "shared address space (RFC 6598)",
		"127.0.0.1": "loopback (RFC 1122)", "127.255.255.254": "loopback (RFC 1122)",
		"169.254.1.1": "link-local (RFC 3927)",
		"192.0.0.9":   "IETF protocol assignments (RFC 6890)", "192.0.0.170": "IETF protocol assignments (RFC 6890)",
		"192.0.2.1": "documentation (RFC 5737)", "198.51.100.1": "documentation (RFC 5737)", "203.0.113.1": "documentation (RFC 5737)",
		"192.31.196.1": "AS112 (RFC 7535)", "192.175.48.1": "AS112 (RFC 7534)", "192.52.193.1": "AMT (RFC 7450)", "192.88.99.1": "6to4 relay (RFC 7526)",
		"198.18.1.1": "benchmarking (RFC 2544)", "198.19.255.255": "benchmarking (RFC 2544)",
		"224.0.0.1": "multicast (RFC 5771)", "239.255.255.255": "multicast (RFC 5771)",
		"240.0.0.1": "reserved (RFC 1112)", "255.255.255.254": "reserved (RFC 1112)", "255.255.255.255": "broadcast (RFC 919)",

		"169.254.169.254": "metadata service of a cloud", "169.254.170.2": "metadata service of a cloud", "169.254.170.23": "metadata service of a cloud",
		"fd00:ec2::254": "metadata service of a cloud", "fd00:ec2::23": "metadata service of a cloud", "fd20:ce::254": "metadata service of a cloud",
		"169.254.169.252": "metadata service of a cloud", "169.254.0.23": "metadata service of a cloud", "169.254.10.10": "metadata service of a cloud",
		"169.254.42.42": "metadata service of a cloud", "fd00:42::42": "metadata service of a cloud", "fd00:c1::a9fe:a9fe": "metadata service of a cloud",
		"fd00:a9fe:a9fe::1": "metadata service of a cloud", "fd00:100::100:200": "metadata service of a cloud",
		"100.100.100.200": "metadata service of a cloud", "168.63.129.16": "metadata service of a cloud", "192.0.0.192": "metadata service of a cloud",

		"::": "unspecified (RFC 4291)", "::1": "loopback (RFC 4291)",
		"::ffff:127.0.0.1": "an IPv4 address in IPv6 (RFC 4291)", "::ffff:93.184.216.34": "an IPv4 address in IPv6 (RFC 4291)",
		"::7f00:1": "an IPv4 address in IPv6 (RFC 4291)", "::ffff:0:7f00:1": "an IPv4 address in IPv6 (RFC 2765)",
		"64:ff9b::7f00:1": "NAT64 (RFC 6052)", "64:ff9b:1::a00:1": "NAT64 (RFC 8215)",
		"100::1": "discard (RFC 6666)", "100:0:0:1::1": "dummy prefix (RFC 9780)",
		"2001::1": "Teredo (RFC 4380)", "2001:2::1": "benchmarking (RFC 5180)", "2001:10::1": "ORCHID (RFC 4843)", "2001:20::1": "ORCHID (RFC 7343)",
		"2001:2f:ffff::1": "ORCHID (RFC 7343)", "2001:1::1": "IETF protocol assignments (RFC 2928)", "2001:30::1": "IETF protocol assignments (RFC 2928)",
		"2001:4:112::1": "IETF protocol assignments (RFC 2928)", "2001:1ff:ffff::1": "IETF protocol assignments (RFC 2928)",
		"2001:db8::1": "documentation (RFC 3849)", "3fff::1": "documentation (RFC 9637)", "3fff:fff::1": "documentation (RFC 9637)",
		"2002:7f00:1::1": "6to4 (RFC 3056)", "2620:4f:8000::1": "AS112 (RFC 7534)", "5f00::1": "segment routing (RFC 9602)",
		"fc00::1": "private (RFC 4193)", "fd12:3456::1": "private (RFC 4193)", "fe80::1": "link-local (RFC 4291)", "fec0::1": "site-local (RFC 3879)",
		"ff02::1": "multicast (RFC 4291)", "4000::1": "not an address of the internet (2000::/3)", "1fff::1": "not an address of the internet (2000::/3)",
		"64:ff9b:2::1": "not an address of the internet (2000::/3)", "200::1": "not an address of the internet (2000::/3)",
		"2606:2800:220:1::1%eth0": "an address of one link", "fe80::1%lo": "an address of one link",

		// Neighbours of what is refused, which are hosts of the internet.
		"1.0.0.1": "", "9.255.255.255": "", "11.0.0.0": "", "100.63.255.255": "", "100.128.0.0": "", "126.255.255.255": "", "128.0.0.1": "",
		"169.253.255.255": "", "169.255.0.0": "", "172.15.255.255": "", "172.32.0.0": "", "192.0.1.0": "", "192.0.3.0": "", "192.167.255.255": "",
		"192.169.0.0": "", "198.17.255.255": "", "198.20.0.0": "", "223.255.255.255": "", "8.8.8.8": "", "168.63.129.17": "",
		"2001:200::1": "", "2001:4860:4860::8888": "", "2606:2800:220:1::1": "", "2003::1": "", "2a00::1": "", "3ffe::1": "", "3fff:1000::1": "",
		"2620:4f:8001::1": "", "2001:db9::1": "",
	} {
		if got := Refused(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Refused(%s) = %q, want %q", addr, got, want)
		}
	}
	if got := Refused(netip.Addr{}); got != "no address" {
		t.Errorf("Refused of nothing = %q", got)
	}
}

// TestEdges: of each row the first and the last address are refused.
func TestEdges(t *testing.T) {
	for _, r := range special {
		p := netip.MustParsePrefix(r.prefix)
		if p.Masked() != p {
			t.Errorf("%s has bits behind its network", r.prefix)
		}
		last := p.Addr().AsSlice()
		for i := p.Bits(); i < 8*len(last); i++ {
			last[i/8] |= 1 << (7 - i%8)
		}
		end, _ := netip.AddrFromSlice(last)
		for _, a := range []netip.Addr{p.Addr(), end} {
			if Refused(a) == "" {
				t.Errorf("%v of %s is not refused", a, r.prefix)
			}
		}
	}
	for _, p := range []netip.Prefix{names.V4, names.V6} {
		if Refused(p.Addr()) == "" {
			t.Errorf("%v, the range inside, is not refused", p)
		}
	}
}
