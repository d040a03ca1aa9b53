package lookup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// Host asks as the host's own programs do: /etc/hosts, then the name servers of
// /etc/resolv.conf, in Go's own resolver. It loads no NSS modules into the
// supervisor: what only they know (mDNS, LDAP) is not found.
type Host struct {
	resolver resolver
	files    resolver // /etc/hosts alone
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	open   sync.WaitGroup
}

// resolver is a *net.Resolver's part.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// NewHost is a Host with nothing open.
func NewHost() *Host {
	h := &Host{dialer: new(net.Dialer).DialContext, conns: map[net.Conn]struct{}{}}
	h.resolver = &net.Resolver{PreferGo: true, Dial: h.dial}
	h.files = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }}
	return h
}

// Lookup is a Func. The dot at the end keeps the search domains of the host out:
// with them a listed name that does not exist would become a name of the host's
// own network, which nobody listed.
func (h *Host) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	addrs, err := h.lookup(ctx, name)
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil, ErrNoName
	}
	for i, a := range addrs {
		// The resolver gives an IPv4 address of /etc/hosts in its IPv6 form. In
		// one form or the other, it is judged as the IPv4 address that it is.
		addrs[i] = a.Unmap()
	}
	return addrs, err
}

// lookup finds a name of one part in /etc/hosts only without the dot, where Go's
// resolver would try search domains next: it gets no name server for that.
func (h *Host) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if !strings.Contains(name, ".") {
		if addrs, err := h.files.LookupNetIP(ctx, "ip", name); err == nil {
			return addrs, nil
		}
	}
	return h.resolver.LookupNetIP(ctx, "ip", name+".")
}

// Close takes the sockets away from the questions that are still open: the
// resolver itself waits for its servers' answers when nobody wants them any
// more, up to some seconds after the run.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	for c := range h.conns {
		c.Close()
	}
	h.mu.Unlock()
	h.open.Wait()
}

func (h *Host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.dialer(ctx, network, address)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	h.conns[c] = struct{}{}
	h.open.Add(1)
	if u, ok := c.(*net.UDPConn); ok {
		return &packets{UDPConn: u, done: h.done(c)}, nil
	}
	return &stream{Conn: c, done: h.done(c)}, nil
}

// done is to be called when the resolver has closed c.
func (h *Host) done(c net.Conn) func() {
	return sync.OnceFunc(func() {
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
		h.open.Done()
	})
}

// packets is a net.PacketConn too: by that the resolver tells UDP from TCP.
type packets struct {
	*net.UDPConn
	done func()
}

func (p *packets) Close() error { defer p.done(); return p.UDPConn.Close() }

type stream struct {
	net.Conn
	done func()
}

func (s *stream) Close() error { defer s.done(); return s.Conn.Close() }
