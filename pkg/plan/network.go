package plan

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/policy"
	"sandglass/pkg/wire"
)

// Network is the list of hosts as it will be enforced.
type Network struct {
	Hosts     []string          `json:"hosts"`     // each with its port, sorted
	Addresses []string          `json:"addresses"` // that are local inside: for names, and the listed ones
	Ports     []uint16          `json:"ports"`     // that the relay listens on inside
	TLSNames  string            `json:"tls_names"` // ports whose TLS hello must name the host
	Limits    map[string]string `json:"limits"`
}

// hosts reads the list, which Validate has found good.
func (b *builder) hosts() (err error) {
	if s := &b.plan.Spec; len(s.Hosts) > 0 {
		b.plan.Hosts, err = hosts.Parse(s.Hosts)
	}
	return err
}

// Routes are the prefixes that are local inside: those that stand for names and
// the listed ones, none without a list. The second may be missing where there is
// no IPv6.
func (p *Plan) Routes() []netip.Prefix {
	if p.Hosts == nil {
		return nil
	}
	return append([]netip.Prefix{names.V4, names.V6}, p.Hosts.Prefixes()...)
}

// Ports are those that init listens on: the listed ones, and the resolver's. None
// without a list.
func (p *Plan) Ports() []uint16 {
	if p.Hosts == nil {
		return nil
	}
	ports := p.Hosts.Ports()
	if at, found := slices.BinarySearch(ports, wire.ResolverPort); !found {
		ports = slices.Insert(ports, at, wire.ResolverPort)
	}
	return ports
}

func (p *Plan) explainNetwork() *Network {
	if p.Hosts == nil {
		return nil
	}
	s := &p.Spec
	n := &Network{Hosts: p.Hosts.Strings(), Ports: p.Ports(), TLSNames: string(s.ServerNames), Limits: map[string]string{}}
	for _, r := range p.Routes() {
		n.Addresses = append(n.Addresses, r.String())
	}
	l := &s.Limits.Net
	rate := "none"
	if l.Rate > 0 {
		rate = policy.FormatSize(l.Rate) + " a second"
	}
	n.Limits["connections"] = strconv.FormatInt(l.Open, 10) + " at once, " + strconv.FormatInt(l.Total, 10) + " in all"
	n.Limits["bytes"] = policy.FormatSize(l.Upload) + " up, " + policy.FormatSize(l.Download) + " down"
	n.Limits["rate"], n.Limits["idle"] = rate, l.Idle.String()
	return n
}

// text is the part for people.
func (n *Network) text(line func(...string)) {
	if n == nil {
		line("network     loopback alone")
		return
	}
	line("network     the listed hosts, by TCP, through a relay")
	for _, h := range n.Hosts {
		line("  ", pad("host", 12), h)
	}
	line("  ", pad("tls names", 12), n.TLSNames)
	for _, k := range sorted(n.Limits) {
		line("  ", pad(k, 12), n.Limits[k])
	}
	line("  ", pad("addresses", 12), strings.Join(n.Addresses, " "))
}
