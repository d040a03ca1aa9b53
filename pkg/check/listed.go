package check

import (
	"net"
	"strconv"
	"sync/atomic"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/sandbox"
	network "sandglass/pkg/sandbox/outside" // "outside" are the tests that run no sandbox
)

// listed is the one host of a list (--allow-host): a server on the host's
// loopback that says a word which is nowhere else. It sees who comes.
type listed struct {
	listener net.Listener
	word     string
	came     atomic.Int64
}

func (b *bait) listed() error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.later(func() { l.Close() })
	b.host = &listed{listener: l}
	if b.host.word, err = random(); err != nil {
		return err
	}
	go b.host.serve()
	return nil
}

func (h *listed) serve() {
	for {
		c, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.came.Add(1)
		c.Write([]byte(h.word))
		c.Close()
	}
}

func (h *listed) port() uint16 { return uint16(h.listener.Addr().(*net.TCPAddr).Port) }

// hostsControls are the list of hosts, with one host in it.
func hostsControls() []control {
	return []control{
		{id: "c47", claim: "list of one host (--allow-host): it is reached", layer: "egress",
			probe: "listed", args: func(b *bait) []string { return []string{probes.Loopback4(b.host.port()).String()} },
			spec: oneHost, judge: judgeListed},
		{id: "c48", claim: "list of one host: no other port, address, name or protocol", layer: "egress",
			probe: "unlisted", args: (*bait).unlisted, spec: oneHost, judge: judgeUnlisted},
	}
}

func oneHost(b *bait, s *sandbox.Spec) {
	s.Hosts = append(s.Hosts, "127.0.0.1:"+strconv.Itoa(int(b.host.port())))
	s.Outside = network.New
}

func judgeListed(b *bait, s *saw) verdict {
	v := s.is("word", b.host.word)
	if v.held {
		return held("its word was read; the relay tells of %d connections", len(s.res.Network.Connections))
	}
	return v
}

// unlisted are the arguments of the probe: what is next to the listed address.
func (b *bait) unlisted() []string {
	port := b.host.port()
	args := []string{
		"connect " + probes.Loopback4(b.door.port4).String(), // another port
		"connect " + probes.Addr{IP: []byte{127, 0, 0, 2}, Port: port}.String(),
		"connect " + probes.Loopback6(port).String(),
		"connect " + probes.Addr{IP: probes.ParseIP("192.0.2.1"), Port: 443}.String(),
		"connect " + probes.Addr{IP: probes.ParseIP("198.18.1.0"), Port: port}.String(), // stands for no name
		"send " + probes.Loopback4(b.door.portUDP).String(),
		"send " + probes.Loopback4(port).String(),
		"send " + probes.Addr{IP: probes.ParseIP("192.0.2.1"), Port: 443}.String(),
		"name " + probes.Host,
	}
	for _, ip := range hostAddresses() {
		args = append(args, "connect "+probes.Addr{IP: ip, Port: port}.String())
	}
	return args
}

func judgeUnlisted(b *bait, s *saw) verdict {
	if what := b.door.arrived(); what != "" {
		return leak("%s", what)
	}
	now := []string{"ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"}
	v := both(s.is("unlisted", "over"), s.only("connect ", now...), s.only("send ", now...), s.is("name "+probes.Host, probes.NoName))
	if n := s.res.Network; v.held && (n == nil || len(n.Connections) != 0) {
		return leak("the relay tells of connections")
	}
	return v
}
