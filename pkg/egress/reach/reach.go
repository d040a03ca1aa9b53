// Package reach judges an address that a listed name led to. Whoever holds a
// name chooses its addresses, also anew at each lookup (DNS rebinding), and the
// connection starts on the host: without this, a listed name would be a way to
// the host's own services, its network, and the credentials that a cloud gives
// to whoever asks from the machine.
package reach

import (
	"net/netip"
	"slices"
	"sync"
)

// Refused is "" for an address of the internet, else why it may not be dialled.
// An address that the list has itself is allowed by the list, not by this.
func Refused(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return "no address"
	case addr.Zone() != "":
		return "an address of one link"
	case Metadata(addr):
		return "metadata service of a cloud"
	}
	for _, r := range rows() {
		if r.prefix.Contains(addr) {
			return r.why
		}
	}
	// Of IPv4 the table has all that is not public. Of IPv6 only an eighth has
	// been given out, and what the rest comes to mean nobody knows yet.
	if addr.Is6() && !global6().Contains(addr) {
		return "not an address of the internet (2000::/3)"
	}
	return ""
}

// Metadata tells whether a cloud's metadata service, which hands credentials to
// whoever asks from the machine, has that address.
func Metadata(addr netip.Addr) bool { return slices.Contains(metadata(), addr) }

// metadata are the addresses that the clouds document: one is in a public range,
// the others are refused by the table as well.
var metadata = sync.OnceValue(func() []netip.Addr {
	var list []netip.Addr
	for _, s := range []string{
		"169.254.169.254",    // AWS, Google, Azure, and most others
		"169.254.169.252",    // Google, roles of pods
		"169.254.170.2",      // AWS, roles of containers
		"169.254.170.23",     // AWS, roles of pods
		"169.254.0.23",       // Tencent
		"169.254.10.10",      // Tencent
		"169.254.42.42",      // Scaleway
		"100.100.100.200",    // Alibaba
		"168.63.129.16",      // Azure's host agent: its address is a public one
		"192.0.0.192",        // Oracle, older machines
		"fd00:ec2::254",      // AWS over IPv6
		"fd00:ec2::23",       // AWS, roles of pods over IPv6
		"fd20:ce::254",       // Google over IPv6
		"fd00:c1::a9fe:a9fe", // Oracle over IPv6
		"fd00:a9fe:a9fe::1",  // Linode over IPv6
		"fd00:42::42",        // Scaleway over IPv6
		"fd00:100::100:200",  // Alibaba over IPv6
	} {
		list = append(list, netip.MustParseAddr(s))
	}
	return list
})

var global6 = sync.OnceValue(func() netip.Prefix { return netip.MustParsePrefix("2000::/3") })

type row struct {
	prefix netip.Prefix
	why    string
}

// rows are made at the first use: a run without a list does not pay for them.
var rows = sync.OnceValue(func() []row {
	var rows []row
	for _, r := range special {
		rows = append(rows, row{netip.MustParsePrefix(r.prefix), r.why})
	}
	return rows
})
