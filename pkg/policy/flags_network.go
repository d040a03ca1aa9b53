package policy

import (
	"sandglass/internal/refusal"
)

func networkFlags() []Flag {
	return []Flag{
		{Name: "allow-host", Arg: "HOST[:PORT]", Group: groupNetwork, Many: true, Set: setAllowHost,
			Help: "let the program reach this host by TCP (port 443), one more with each flag; *.example.org is every name below, ADDRESS and PREFIX/BITS as such"},
		{Name: "tls-sni-check", Arg: "443|all|off", Default: "443", Group: groupNetwork, Set: setSNICheck,
			Help: "on which ports the server name of a TLS hello must be the host's"},
		{Name: "net-connections", Arg: "N", Default: "64", Group: groupNetwork, Set: netCount(func(n *NetLimits) *int64 { return &n.Open }),
			Help: "connections at the same time; further ones wait"},
		{Name: "net-connections-total", Arg: "N", Default: "4096", Group: groupNetwork, Set: netCount(func(n *NetLimits) *int64 { return &n.Total }),
			Help: "connections in all; further ones are refused"},
		{Name: "net-upload", Arg: "SIZE", Default: "64m", Group: groupNetwork, Set: netSize(func(n *NetLimits) *int64 { return &n.Upload }),
			Help: "bytes that the program may send, of all connections together"},
		{Name: "net-download", Arg: "SIZE", Default: "1g", Group: groupNetwork, Set: netSize(func(n *NetLimits) *int64 { return &n.Download }),
			Help: "bytes that it may receive"},
		{Name: "net-rate", Arg: "SIZE", Group: groupNetwork, Set: unlimited("--net-rate", netSize(func(n *NetLimits) *int64 { return &n.Rate })),
			Help: "bytes a second, both directions together (default none)"},
		{Name: "net-idle", Arg: "DURATION", Default: "5m", Group: groupNetwork, Set: duration(func(l *Limits) durationField { return &l.Net.Idle }),
			Help: "time without a byte after which a connection is cut"},
	}
}

// setAllowHost takes the words as they are; what they mean is judged with all of
// them together, see checkHosts.
func setAllowHost(p *Parsed, v string) error {
	if v == "" {
		return refusal.Newf("the host is empty").Hint("--allow-host example.org:443")
	}
	p.Spec.Hosts = append(p.Spec.Hosts, v)
	return nil
}

func setSNICheck(p *Parsed, v string) error {
	p.Spec.ServerNames = SNICheck(v)
	return p.Spec.ServerNames.check()
}

func netSize(at func(*NetLimits) *int64) func(*Parsed, string) error {
	return size(func(l *Limits) *int64 { return at(&l.Net) })
}

func netCount(at func(*NetLimits) *int64) func(*Parsed, string) error {
	return count(func(l *Limits) *int64 { return at(&l.Net) })
}

// network refuses flags that contradict each other, or that mean nothing.
func (p *Parsed) network() error {
	given := p.pending.given
	if len(p.Spec.Hosts) > 0 {
		for _, name := range [...]string{"network", "net"} {
			if _, ok := given[name]; ok {
				return refusal.Newf("--%s none and --allow-host contradict each other", name).
					Hint("leave --%s none out: the listed hosts are all that the program reaches", name)
			}
		}
		return nil
	}
	for _, f := range networkFlags() {
		if v, ok := given[f.Name]; ok && v != f.Default {
			return refusal.Newf("--%s means nothing without --allow-host", f.Name).Hint("--allow-host example.org:443")
		}
	}
	return nil
}
