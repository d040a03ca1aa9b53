// Package hosts is the list of a run with --allow-host: which names, addresses
// and ports a program may reach, and nothing else. It is pure and light: the
// flags are checked with it before anything of a run exists.
package hosts

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sandglass/pkg/egress/reach"
)

// MaxRules and MaxPorts keep the list short: each port is a socket inside, each
// address a route, and a list that nobody reads is no list.
const (
	MaxRules = 64
	MaxPorts = 16
)

// DefaultPort is that of a value without one: https.
const DefaultPort = 443

// Rule is one host and one port. It has either a Name or a Prefix.
type Rule struct {
	Name     string       // canonical; of a wildcard, what stands below the star
	Wildcard bool         // every name below Name, one level or more, never Name itself
	Prefix   netip.Prefix // of one address: with all its bits
	Port     uint16
}

// String is the rule as a value of --allow-host, the same for all its spellings.
func (r Rule) String() string {
	port := strconv.Itoa(int(r.Port))
	switch {
	case r.Wildcard:
		return "*." + r.Name + ":" + port
	case r.Name != "":
		return r.Name + ":" + port
	}
	host := r.Prefix.String()
	if r.Prefix.IsSingleIP() {
		host = r.Prefix.Addr().String()
	}
	if r.Prefix.Addr().Is6() {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// List is what Parse made. A nil List and an empty one allow nothing.
type List struct{ rules []Rule }

// Rules are the rules in the order of Strings.
func (l *List) Rules() []Rule {
	if l == nil {
		return nil
	}
	return slices.Clone(l.rules)
}

// AllowsName tells whether a connection to that name and port is allowed. The
// name must be canonical: of any other spelling the answer is no, so that no
// form of a name that was not foreseen (a NUL in it, a dot behind it) matches.
func (l *List) AllowsName(name string, port uint16) bool {
	return canonical(name) && l.any(func(r Rule) bool { return r.Port == port && r.matches(name) })
}

// AllowsAnyPort tells whether the name may be looked up at all.
func (l *List) AllowsAnyPort(name string) bool {
	return canonical(name) && l.any(func(r Rule) bool { return r.matches(name) })
}

// Below is the longest suffix whose wildcard allows the name, if nothing but a
// wildcard does. What stands before it was chosen by the program, and can carry
// what the program knows to whoever answers for the suffix.
func (l *List) Below(name string) (suffix string, ok bool) {
	if l == nil || !canonical(name) {
		return "", false
	}
	for _, r := range l.rules {
		switch {
		case !r.matches(name):
		case !r.Wildcard:
			return "", false
		case len(r.Name) > len(suffix):
			suffix = r.Name
		}
	}
	return suffix, suffix != ""
}

// AllowsAddr tells whether the list has that address itself, as one address or
// as a network. Names play no part. A network of many addresses does not name
// the metadata service of a cloud: whoever lists 169.254.0.0/16 seldom means to
// hand out the host's credentials, and can list that address. A zone and the
// IPv4-mapped form are never in the list; a caller that has its addresses from
// a socket of both families unmaps them.
func (l *List) AllowsAddr(addr netip.Addr, port uint16) bool {
	return l.any(func(r Rule) bool {
		return r.Name == "" && r.Port == port && r.Prefix.Contains(addr) &&
			(r.Prefix.IsSingleIP() || !reach.Metadata(addr))
	})
}

// By is the rule that allows a connection to the name, or without one to the
// address, "" where none does.
func (l *List) By(name string, to netip.AddrPort) string {
	for _, r := range l.Rules() {
		if r.Port == to.Port() && (r.matches(name) || name == "" && r.Prefix.Contains(to.Addr())) {
			return r.String()
		}
	}
	return ""
}

// Ports are the ports of the list, each once, in order.
func (l *List) Ports() []uint16 {
	var ports []uint16
	for _, r := range l.Rules() {
		ports = append(ports, r.Port)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Prefixes are the addresses and networks of the list, each once, in order.
func (l *List) Prefixes() []netip.Prefix {
	var prefixes []netip.Prefix
	for _, r := range l.Rules() {
		if r.Name == "" {
			prefixes = append(prefixes, r.Prefix)
		}
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	return slices.Compact(prefixes)
}

// Strings is the whole list in its one spelling, sorted: two lists that allow
// the same in the same words are the same here. Parse makes the same list of it.
func (l *List) Strings() []string {
	s := []string{}
	for _, r := range l.Rules() {
		s = append(s, r.String())
	}
	return s
}

func (l *List) any(f func(Rule) bool) bool { return l != nil && slices.ContainsFunc(l.rules, f) }

func (r Rule) matches(name string) bool {
	if r.Wildcard {
		below, found := strings.CutSuffix(name, "."+r.Name)
		return found && below != ""
	}
	return r.Name != "" && r.Name == name
}
