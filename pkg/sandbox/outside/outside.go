// Package outside is the network of runs with a list of hosts: set it as
// sandbox.Spec.Outside. It is apart from package sandbox because it links package
// net, with which Go links C into every program that is not built without cgo.
package outside

import (
	"net/netip"
	"os"
	"time"

	"sandglass/pkg/egress"
	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// New is the network of one run, which has yet to start.
func New(s *policy.Spec) (sandbox.Outside, error) {
	list, err := hosts.Parse(s.Hosts)
	if err != nil {
		return nil, err
	}
	l := &s.Limits.Net
	return &network{config: egress.Config{
		List: list, SNI: serverNames(s.ServerNames),
		Limits: egress.Limits{
			Open: int(l.Open), Total: int(l.Total), Up: l.Upload, Down: l.Download, Rate: l.Rate, Idle: l.Idle,
		},
	}}, nil
}

// serverNames has each of Validate's words. No map at the package's level: every
// start would make it, init's too.
func serverNames(c policy.SNICheck) egress.SNI {
	switch c {
	case policy.SNIAll:
		return egress.SNIAll
	case policy.SNIOff:
		return egress.SNIOff
	}
	return egress.SNI443
}

type network struct {
	config egress.Config
	server *egress.Server
}

// Start answers on init's sockets.
func (n *network) Start(packet *os.File, listeners []*os.File, v6 bool) (err error) {
	n.server, err = egress.Start(n.config, egress.Sockets{Listeners: listeners, Packet: packet, V6: v6})
	return err
}

func (n *network) Settle(d time.Duration) {
	if n.server != nil {
		n.server.Settle(d)
	}
}

func (n *network) NameOf(addr netip.Addr) (string, bool) {
	if n.server == nil {
		return "", false
	}
	return n.server.NameOf(addr)
}

// Close is nil for a network that was not started.
func (n *network) Close() *result.Network {
	if n.server == nil {
		return nil
	}
	return n.server.Close()
}
