// Package egress is the network of a run with a list of hosts (--allow-host). The
// sandbox keeps a network namespace of its own with loopback alone; init opens
// sockets in it and hands them to the supervisor, where this package answers on
// them: a name server that knows the listed names, and a relay that joins the
// program's connections with the host's. There is no helper program and no
// privilege, and nothing else leads out.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/lookup"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/egress/record"
	"sandglass/pkg/egress/relay"
	"sandglass/pkg/egress/resolver"
	"sandglass/pkg/result"
)

// Limits and SNI are the relay's.
type (
	Limits = relay.Limits
	SNI    = relay.SNI
)

// Which ports the server name of a TLS hello is compared on.
const (
	SNI443 = relay.SNI443
	SNIOff = relay.SNIOff
	SNIAll = relay.SNIAll
)

// DefaultLimits are the relay's.
func DefaultLimits() Limits { return relay.DefaultLimits() }

// Config is what a run allows.
type Config struct {
	List   *hosts.List
	Limits Limits
	SNI    SNI
	// Lookup resolves names on the host, and ends soon after its context. nil:
	// the host's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
}

// Sockets are of the sandbox's network namespace, made before the program runs.
type Sockets struct {
	// Listeners are TCP sockets, one for each port of the list and one for the
	// resolver's, bound to every address.
	Listeners []*os.File
	Packet    *os.File // UDP, of the resolver
	V6        bool     // IPv6 is there inside
}

// Close closes the sockets of a run that did not come to Start.
func (s *Sockets) Close() {
	for _, f := range s.Listeners {
		f.Close()
	}
	if s.Packet != nil {
		s.Packet.Close()
	}
}

// Server is the network of one run.
type Server struct {
	log    record.Log
	table  *names.Table
	relay  *relay.Server
	packet net.PacketConn
	cache  *lookup.Cache
	host   *lookup.Host // nil: the caller's Lookup
	wg     sync.WaitGroup
}

// Start begins to serve. It takes the sockets over, also when it fails.
func Start(cfg Config, socks Sockets) (*Server, error) {
	listeners, packet, err := adopt(socks)
	if err == nil && (cfg.List == nil || len(cfg.List.Rules()) == 0) {
		err = errors.New("the list of hosts is empty")
	}
	if err != nil {
		closeAll(listeners, packet)
		return nil, err
	}
	table := names.New()
	s := &Server{packet: packet, table: table}
	ask := cfg.Lookup
	if ask == nil {
		s.host = lookup.NewHost()
		ask = s.host.Lookup
	}
	s.cache = lookup.New(ask)
	dns := &resolver.Server{List: cfg.List, Table: table, Lookup: s.cache.Lookup, V6: socks.V6, Log: &s.log}
	s.relay, err = relay.Start(relay.Config{
		List: cfg.List, Table: table, Lookup: s.cache.Lookup, Resolve: dns.ServeConn,
		SNI: cfg.SNI, Limits: cfg.Limits, Log: &s.log,
	}, listeners)
	if err != nil {
		s.closeLookup()
		packet.Close()
		return nil, err
	}
	s.wg.Go(func() { _ = dns.ServePacket(packet) })
	return s, nil
}

// NameOf is the name that an address stands for inside.
func (s *Server) NameOf(addr netip.Addr) (string, bool) { return s.table.Name(addr) }

// Settle waits for at most d until what the program sent before it ended is on
// its way.
func (s *Server) Settle(d time.Duration) { s.relay.Settle(d) }

// Close ends everything at once, waits until no goroutine and no descriptor is
// left, and says what the run did.
func (s *Server) Close() *result.Network {
	// First the connections: one whose name is being looked up was open when the
	// run ended, and did not fail for want of an answer.
	s.relay.Cut()
	s.packet.Close()
	s.closeLookup()
	s.relay.Close()
	s.wg.Wait()
	return s.log.Network()
}

func (s *Server) closeLookup() {
	s.cache.Close()
	if s.host != nil {
		s.host.Close()
	}
}

// adopt makes connections of the descriptors, which it closes: Go keeps copies,
// and a socket that is left open keeps the sandbox's namespace alive.
func adopt(socks Sockets) (listeners []*net.TCPListener, packet net.PacketConn, err error) {
	defer socks.Close()
	for _, f := range socks.Listeners {
		l, err := net.FileListener(f)
		if err != nil {
			return listeners, nil, fmt.Errorf("a listener of the sandbox: %w", err)
		}
		t, ok := l.(*net.TCPListener)
		if !ok {
			l.Close()
			return listeners, nil, errors.New("a listener of the sandbox is not one of TCP")
		}
		listeners = append(listeners, t)
	}
	if socks.Packet == nil {
		return listeners, nil, errors.New("there is no socket for the resolver")
	}
	packet, err = net.FilePacketConn(socks.Packet)
	if err != nil {
		return listeners, nil, fmt.Errorf("the socket of the resolver: %w", err)
	}
	return listeners, packet, nil
}

func closeAll(listeners []*net.TCPListener, packet net.PacketConn) {
	for _, l := range listeners {
		l.Close()
	}
	if packet != nil {
		packet.Close()
	}
}
