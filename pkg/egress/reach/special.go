package reach

// special are the special-purpose registries of IANA (RFC 6890, as they stand in
// 2026), all rows, those that are called globally reachable too: they are relays
// and sinks that the nearest network may run itself, and no host has its service
// there. To them come multicast and what the registries leave to other pages.
// A narrow row stands before a wide one, so that the reason is the exact one.
var special = []struct{ prefix, why string }{
	{"0.0.0.0/8", "this host on this network (RFC 791)"}, // Linux connects 0.0.0.0 to itself
	{"10.0.0.0/8", "private (RFC 1918)"},
	{"100.64.0.0/10", "shared address space (RFC 6598)"},
	{"127.0.0.0/8", "loopback (RFC 1122)"},
	{"169.254.0.0/16", "link-local (RFC 3927)"},
	{"172.16.0.0/12", "private (RFC 1918)"},
	{"192.0.0.0/24", "IETF protocol assignments (RFC 6890)"}, // DS-Lite, PCP and TURN anycast, NAT64 discovery
	{"192.0.2.0/24", "documentation (RFC 5737)"},
	{"192.31.196.0/24", "AS112 (RFC 7535)"},
	{"192.52.193.0/24", "AMT (RFC 7450)"},
	{"192.88.99.0/24", "6to4 relay (RFC 7526)"},
	{"192.168.0.0/16", "private (RFC 1918)"},
	{"192.175.48.0/24", "AS112 (RFC 7534)"},
	{"198.18.0.0/15", "benchmarking (RFC 2544)"}, // the range inside, too
	{"198.51.100.0/24", "documentation (RFC 5737)"},
	{"203.0.113.0/24", "documentation (RFC 5737)"},
	{"224.0.0.0/4", "multicast (RFC 5771)"},
	{"255.255.255.255/32", "broadcast (RFC 919)"},
	{"240.0.0.0/4", "reserved (RFC 1112)"},

	{"::1/128", "loopback (RFC 4291)"},
	{"::/128", "unspecified (RFC 4291)"},
	{"::ffff:0:0/96", "an IPv4 address in IPv6 (RFC 4291)"}, // ::ffff:127.0.0.1 is the host
	{"::/96", "an IPv4 address in IPv6 (RFC 4291)"},         // the older form
	{"::ffff:0:0:0/96", "an IPv4 address in IPv6 (RFC 2765)"},
	// A translator on the way turns these into the IPv4 address at their end,
	// which may be any of those above.
	{"64:ff9b::/96", "NAT64 (RFC 6052)"},
	{"64:ff9b:1::/48", "NAT64 (RFC 8215)"},
	{"100::/64", "discard (RFC 6666)"},
	{"100:0:0:1::/64", "dummy prefix (RFC 9780)"},
	{"2001::/32", "Teredo (RFC 4380)"}, // an IPv4 address in it, as in 6to4
	{"2001:2::/48", "benchmarking (RFC 5180)"},
	{"2001:10::/28", "ORCHID (RFC 4843)"},
	{"2001:20::/28", "ORCHID (RFC 7343)"},
	{"2001::/23", "IETF protocol assignments (RFC 2928)"},
	{"2001:db8::/32", "documentation (RFC 3849)"},
	{"2002::/16", "6to4 (RFC 3056)"},
	{"2620:4f:8000::/48", "AS112 (RFC 7534)"},
	{"3fff::/20", "documentation (RFC 9637)"},
	{"5f00::/16", "segment routing (RFC 9602)"},
	{"fc00::/7", "private (RFC 4193)"},
	{"fe80::/10", "link-local (RFC 4291)"},
	{"fec0::/10", "site-local (RFC 3879)"},
	{"ff00::/8", "multicast (RFC 4291)"},
}
