package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"sandglass/pkg/egress/reach"
	"sandglass/pkg/egress/route"
	"sandglass/pkg/result"
)

// addresses are those of the host that may be dialled. A name is resolved now
// and not when the program asked: what was public then may be private now (DNS
// rebinding), and what is judged here is what is dialled.
func (c *conn) addresses() ([]netip.Addr, bool) {
	if c.name == "" {
		return []netip.Addr{c.dest.Addr()}, true
	}
	found, err := c.s.cfg.Lookup(c.ctx, c.name)
	if err != nil || len(found) == 0 {
		c.cut(result.Unreachable, lookupError(err))
		return nil, false
	}
	var list []netip.Addr
	why := ""
	for _, a := range found {
		a = a.Unmap()
		switch bad := c.judge(a); {
		case bad == "":
			list = append(list, a)
		case why == "":
			why = a.String() + ": " + bad
		}
	}
	if len(list) == 0 {
		c.cut(result.Private, errors.New(why))
		return nil, false
	}
	return list, true
}

// judge says why a may not be dialled. What the list names as an address is
// meant.
func (c *conn) judge(a netip.Addr) string {
	if c.s.cfg.List.AllowsAddr(a, c.dest.Port()) {
		return ""
	}
	if bad := reach.Refused(a); bad != "" {
		return bad
	}
	return route.Refused(a)
}

// lookupError leaves out which server was asked: it is the host's own business,
// and a result may be shown to whoever wrote the program.
func lookupError(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return errors.New(dns.Err)
	}
	if err == nil {
		return errors.New("the name has no address")
	}
	return err
}

// dial connects to the first of the addresses that answers, each by literal.
func (c *conn) dial(addrs []netip.Addr) bool {
	d := destination{c.name, c.dest.Port()}
	if err := c.s.silent.heard(d, c.dest.Addr().Is4()); err != nil {
		c.cut(result.Unreachable, err)
		return false
	}
	begun := time.Now()
	order := takeTurns(addrs)
	c.dialling(order[0])
	ctx, cancel := context.WithTimeout(c.ctx, dialTime)
	defer cancel()
	out, addr, err := race(ctx, order, c.s.count, c.dialOne, reset)
	if err == nil {
		return c.dialledTo(out, addr)
	}
	if c.name != "" && c.ctx.Err() == nil {
		c.s.silent.add(d, c.dest.Addr().Is4(), begun, err)
	}
	c.cut(result.Unreachable, err)
	return false
}

func (c *conn) dialOne(ctx context.Context, a netip.Addr) (*net.TCPConn, error) {
	if c.s.cfg.dial != nil {
		return c.s.cfg.dial(ctx, a)
	}
	to := netip.AddrPortFrom(a, c.dest.Port())
	network := "tcp6"
	if a.Is4() {
		network = "tcp4"
	}
	dialer := net.Dialer{Control: func(_, address string, raw syscall.RawConn) error {
		err := errors.Join(c.control(address), inline(raw))
		if err == nil && len(c.s.slots) > large {
			err = shrink(raw)
		}
		return err
	}}
	return dial(ctx, dialer, network, to)
}

// dial lets connect(2) choose the local port. Dialer.DialTCP binds one first, even
// for no address: such ports serve one connection each until a minute after its end,
// whoever is at the other end, and a program could take all that the host has.
func dial(ctx context.Context, dialer net.Dialer, network string, to netip.AddrPort) (*net.TCPConn, error) {
	c, err := dialer.DialContext(ctx, network, to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// control sees the address that goes to connect(2), the last moment at which a
// wrong one can be stopped, whatever the code before it has done.
func (c *conn) control(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if to.Port() != c.dest.Port() {
		return errors.New("another port than the program's would be dialled")
	}
	if bad := c.judge(to.Addr()); bad != "" {
		return errors.New(to.Addr().String() + ": " + bad)
	}
	return nil
}
