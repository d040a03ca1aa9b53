package wire

// Route is a prefix of addresses that are all local inside.
type Route struct {
	Addr     []byte // 4 or 16
	Bits     uint8
	Optional bool // left out where the kernel has no such family
}

// ResolverPort is where programs ask for names, on 127.0.0.1 by UDP and TCP.
const ResolverPort = 53

// MaxRoutes and MaxPorts bound Config.Routes and Config.Ports: a list of hosts is
// a short one, and the sockets come in one message.
const (
	MaxRoutes = 66
	MaxPorts  = 17
)

func (c *Config) encodeNetwork(e *encoder) {
	e.uint(uint64(len(c.Routes)))
	for _, r := range c.Routes {
		e.bytes(r.Addr)
		e.uint(uint64(r.Bits))
		e.bool(r.Optional)
	}
	e.uint(uint64(len(c.Ports)))
	for _, port := range c.Ports {
		e.uint(uint64(port))
	}
}

func (c *Config) decodeNetwork(d *decoder) {
	for n := d.count(); n > 0 && !d.bad; n-- {
		r := Route{Addr: d.bytes(), Bits: d.byte(), Optional: d.bool()}
		if (len(r.Addr) != 4 && len(r.Addr) != 16) || int(r.Bits) > 8*len(r.Addr) {
			d.bad = true
		}
		c.Routes = append(c.Routes, r)
	}
	for n := d.count(); n > 0 && !d.bad; n-- {
		c.Ports = append(c.Ports, d.uint16())
	}
	if len(c.Routes) > MaxRoutes || len(c.Ports) > MaxPorts {
		d.bad = true
	}
}
