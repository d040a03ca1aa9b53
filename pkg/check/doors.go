package check

import (
	"os"
	"strings"
	"syscall"

	"sandglass/pkg/check/probes"

	"golang.org/x/sys/unix"
)

// doors are what listens on the host's loopback: a name server, a TCP server
// for each family, and a unix socket without a file. Everything that loopback
// delivers is in their queues when the sender returns, so once a sandbox is
// gone an empty queue is proof that nothing arrived.
type doors struct {
	tcp4, tcp6, udp int // -1: none
	unix            int
	port4, port6    uint16
	portUDP         uint16
}

func (b *bait) doors() error {
	d := &doors{tcp4: -1, tcp6: -1, udp: -1, unix: -1}
	b.door = d
	b.later(d.close)
	var err error
	if d.tcp4, err = listen(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if d.udp, err = listen(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if d.unix, err = listen(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "@" + b.socketName()}); err != nil {
		return err
	}
	// A host without IPv6 has no second door.
	d.tcp6, _ = listen(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Addr: [16]byte{15: 1}})
	d.port4, d.port6, d.portUDP = port(d.tcp4), port(d.tcp6), port(d.udp)
	return nil
}

func (b *bait) socketName() string { return "sandglass-check-" + b.mark }

func listen(family, kind int, at unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, at); err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 16)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func port(fd int) uint16 {
	if fd < 0 {
		return 0
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return 0
	}
	switch a := at.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port)
	case *unix.SockaddrInet6:
		return uint16(a.Port)
	}
	return 0
}

func (d *doors) close() {
	for _, fd := range []int{d.tcp4, d.tcp6, d.udp, d.unix} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// arrived names what came in at the network's doors, or "".
func (d *doors) arrived() string {
	switch {
	case accepts(d.tcp4) || accepts(d.tcp6):
		return "a connection arrived at the host"
	case receives(d.udp):
		return "a query arrived at the host's name server"
	}
	return ""
}

// accepts takes one connection if there is one.
func accepts(fd int) bool {
	if fd < 0 {
		return false
	}
	c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
	if err == nil {
		unix.Close(c)
	}
	return err == nil
}

func receives(fd int) bool {
	_, _, err := unix.Recvfrom(fd, make([]byte, 512), 0)
	return err == nil
}

// targets are the arguments of the request probe: the world, every door, every
// name server of the host and every other address of it.
func (b *bait) targets() []string {
	d := b.door
	args := []string{
		"world",
		"server " + probes.Loopback4(d.portUDP).String(),
		"connect " + probes.Loopback4(d.port4).String(),
	}
	if d.port6 != 0 {
		args = append(args, "connect "+probes.Loopback6(d.port6).String())
	}
	for _, ip := range hostServers() {
		args = append(args, "server "+probes.Addr{IP: ip, Port: 53}.String())
	}
	for _, ip := range hostAddresses() {
		args = append(args, "connect "+probes.Addr{IP: ip, Port: d.port4}.String())
	}
	return args
}

func hostServers() [][]byte {
	var list [][]byte
	conf, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(conf)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
			if ip := probes.ParseIP(f[1]); ip != nil {
				list = append(list, ip)
			}
		}
	}
	return list
}

// hostAddresses are the host's own but for loopback's, and those of one link,
// which mean nothing without an interface.
func hostAddresses() [][]byte {
	table, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil
	}
	var list [][]byte
	for i := range messages {
		if messages[i].Header.Type != syscall.RTM_NEWADDR {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&messages[i])
		if err != nil {
			continue
		}
		for _, a := range attrs {
			if a.Attr.Type == syscall.IFA_ADDRESS && elsewhere(a.Value) {
				list = append(list, a.Value)
			}
		}
	}
	return list
}

// elsewhere: neither loopback nor an address of one link.
func elsewhere(ip []byte) bool {
	switch len(ip) {
	case 4:
		return ip[0] != 127 && (ip[0] != 169 || ip[1] != 254)
	case 16:
		return string(ip) != string(probes.Loopback6(0).IP) && (ip[0] != 0xfe || ip[1]&0xc0 != 0x80)
	}
	return false
}
