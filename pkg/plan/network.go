package plan

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/policy"
)

// Network is the list of hosts as it will be enforced.
type Network struct {
	Hosts     []string          `json:"hosts"`     // each with its port, sorted
	Addresses []string          `json:"addresses"` // that are local inside: for names, and the listed ones
	Ports     []uint16          `json:"ports"`     // that the relay listens on inside
	TLSNames  string            `json:"tls_names"` // ports whose TLS hello must name the host
	Limits    map[string]string `json:"limits"`
}

// Routes are the prefixes that are local inside: those that stand for names and
// the listed ones. The second may be missing where there is no IPv6.
func Routes(list *hosts.List) []netip.Prefix {
	return append([]netip.Prefix{names.V4, names.V6}, list.Prefixes()...)
}

// Ports are those that init listens on: the listed ones, and the resolver's.
func Ports(list *hosts.List) []uint16 {
	ports := list.Ports()
	if at, found := slices.BinarySearch(ports, dnsPort); !found {
		ports = slices.Insert(ports, at, dnsPort)
	}
	return ports
}

const dnsPort = 53

func explainNetwork(s *policy.Spec) (*Network, error) {
	if len(s.Hosts) == 0 {
		return nil, nil
	}
	list, err := hosts.Parse(s.Hosts)
	if err != nil {
		return nil, err
	}
	n := &Network{Hosts: list.Strings(), Ports: Ports(list), TLSNames: string(s.ServerNames), Limits: map[string]string{}}
	for _, p := range Routes(list) {
		n.Addresses = append(n.Addresses, p.String())
	}
	l := &s.Limits.Net
	rate := "none"
	if l.Rate > 0 {
		rate = policy.FormatSize(l.Rate) + " a second"
	}
	n.Limits["connections"] = strconv.FormatInt(l.Open, 10) + " at once, " + strconv.FormatInt(l.Total, 10) + " in all"
	n.Limits["bytes"] = policy.FormatSize(l.Upload) + " up, " + policy.FormatSize(l.Download) + " down"
	n.Limits["rate"], n.Limits["idle"] = rate, l.Idle.String()
	return n, nil
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
