// Package names gives each name of a run with a list of hosts an address of its
// own inside. A connection to it tells by its address alone which name the
// program looked up, whatever client it used.
package names

import (
	"net/netip"
	"sync"
)

// V4 and V6 are the ranges, which are local inside. V4 is the one for tests of
// network devices (RFC 2544), which no host on the internet has; its first /24
// stays free for the sandbox. V6 is a private one (RFC 4193): "sandg".
var (
	V4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)
	V6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 's', 'a', 'n', 'd', 'g'}), 64)
)

// Max is how many names a run can have. A program can make up names below a
// wildcard, and the supervisor remembers each.
const Max = 1024

// Table is safe for several goroutines.
type Table struct {
	mu     sync.Mutex
	number map[string]int
	names  []string
}

// New is an empty Table.
func New() *Table { return &Table{number: map[string]int{}} }

// For is the pair of addresses of a name, the same one each time. It is not ok
// for a new name when there are Max.
func (t *Table) For(name string) (v4, v6 netip.Addr, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.number[name]
	if !found {
		if len(t.names) == Max {
			return netip.Addr{}, netip.Addr{}, false
		}
		n = len(t.names)
		t.number[name], t.names = n, append(t.names, name)
	}
	v4, v6 = pair(n)
	return v4, v6, true
}

// Name is the name whose address this is. A zone or the IPv4-mapped form is no
// name's; a caller with a socket of both families unmaps first.
func (t *Table) Name(addr netip.Addr) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := index(addr)
	if !ok || n >= len(t.names) {
		return "", false
	}
	if v4, v6 := pair(n); addr != v4 && addr != v6 {
		return "", false
	}
	return t.names[n], true
}

// perNet leaves out the first and the last address of each /24, which some
// programs take for those of a network.
const perNet = 254

// pair are the addresses of the n-th name. The IPv6 one ends in the IPv4 one, so
// that a person sees in a trace that they are the same name.
func pair(n int) (v4, v6 netip.Addr) {
	a4 := V4.Addr().As4()
	a4[2], a4[3] = byte(1+n/perNet), byte(1+n%perNet)
	a6 := V6.Addr().As16()
	copy(a6[12:], a4[:])
	return netip.AddrFrom4(a4), netip.AddrFrom16(a6)
}

// index is the inverse, as far as the last two bytes go.
func index(addr netip.Addr) (int, bool) {
	b := addr.AsSlice()
	if len(b) < 4 {
		return 0, false
	}
	b = b[len(b)-2:]
	n := (int(b[0])-1)*perNet + int(b[1]) - 1
	return n, n >= 0 && b[1] != 0
}
