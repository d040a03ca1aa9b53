package boxinit

import (
	"sandglass/internal/sys"
	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// backlog is how many connections wait to be accepted. The supervisor accepts no
// more than it may have open; the others wait here.
const backlog = 64

// openNetwork makes what a list of hosts needs: the addresses that stand for
// them, all local, and sockets for them in this network namespace, which has no
// way out. Those go to the supervisor, which is outside: whatever leaves passes
// through it. Nothing of this stays with init.
func openNetwork(b *box) error {
	if len(b.cfg.Ports) == 0 {
		return nil
	}
	v6, err := addRoutes(b.cfg.Routes)
	if err != nil {
		return err
	}
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	packet, err := resolverSocket()
	if err != nil {
		return &mount.Error{Op: "socket of the resolver", Errno: err.(unix.Errno)}
	}
	fds = append(fds, packet)
	if err := tryPackets(packet, b.cfg.Routes); err != nil {
		return &mount.Error{Op: "packet inside", Errno: err.(unix.Errno)}
	}
	for _, port := range b.cfg.Ports {
		fd, err := listenOn(int(port), v6)
		if err != nil {
			return &mount.Error{Op: "socket for the listed hosts", Errno: err.(unix.Errno)}
		}
		fds = append(fds, fd)
	}
	report(b.control, &wire.Report{Type: wire.TypeNetwork, IPv6: v6}, fds)
	return nil
}

// addRoutes makes the prefixes local, and says whether there is IPv6. The names'
// own IPv6 prefix, the one that may be missing, is left out where there is none.
func addRoutes(routes []wire.Route) (v6 bool, err error) {
	for _, r := range routes {
		err := sys.AddLocalRoute(r.Addr, int(r.Bits))
		switch {
		case err == nil:
			v6 = v6 || len(r.Addr) == 16
		case r.Optional:
		case err == unix.EEXIST: // 127.0.0.1 and ::1 are local already
		default:
			return false, &mount.Error{Op: "route of the listed hosts", Errno: err.(unix.Errno)}
		}
	}
	return v6, nil
}

// tryPackets sends nothing to nobody, inside: a control group's filter on addresses
// (IPAddressDeny= of a unit) holds for the loopback of every namespace too. The
// program would wait for connections that nobody sees, without a word of why.
func tryPackets(packet int, routes []wire.Route) error {
	const discard = 9
	for _, r := range append([]wire.Route{{Addr: []byte{127, 0, 0, 1}}}, routes...) {
		if len(r.Addr) != 4 {
			continue
		}
		if err := unix.Sendto(packet, nil, 0, &unix.SockaddrInet4{Port: discard, Addr: [4]byte(r.Addr)}); err != nil {
			return err
		}
	}
	return nil
}

func resolverSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: wire.ResolverPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// listenOn listens on a port of every address there is, of both families.
func listenOn(port int, v6 bool) (int, error) {
	family, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: port})
	if v6 {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: port}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if v6 { // net.ipv6.bindv6only of the host's does not matter
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
