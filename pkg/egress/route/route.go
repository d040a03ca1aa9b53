// Package route asks the kernel whether an address is the host's own. A public
// one may be: what listens on it is often open to the machine itself alone,
// behind a firewall that lets everything from loopback through, and a connection
// of the supervisor comes from the machine itself.
package route

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The sizes of nlmsghdr and rtmsg, and where in the reply the route's type is.
const (
	sizeHeader = unix.SizeofNlMsghdr
	sizeRoute  = unix.SizeofRtMsg
	typeAt     = sizeHeader + 7
)

// Refused is "" for an address of other hosts, else why it may not be dialled.
// The kernel says it for every kind of own address: those of interfaces, the
// second ones too, and whole networks that are routed to loopback. Where it
// cannot be asked, nothing is dialled.
func Refused(addr netip.Addr) string {
	kind, err := routeType(addr)
	switch {
	case err != nil:
		return fmt.Sprintf("the host's routes cannot be read: %v", err)
	case kind == unix.RTN_LOCAL:
		return "an address of this host"
	case kind == unix.RTN_BROADCAST, kind == unix.RTN_ANYCAST, kind == unix.RTN_MULTICAST:
		return "an address of several hosts"
	}
	return "" // routed, or not at all, which the dial tells
}

// routeType is the type of the route that a packet of ours to addr would take.
func routeType(addr netip.Addr) (byte, error) {
	if !addr.IsValid() || addr.Zone() != "" || addr.Is4In6() {
		return 0, fmt.Errorf("%v is no plain address", addr)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, request(addr), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	buf := make([]byte, 4096)
	// The kernel has answered when the send returns: never wait here.
	n, from, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
	if err != nil {
		return 0, err
	}
	if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != 0 {
		return 0, fmt.Errorf("an answer that is not the kernel's")
	}
	return answered(buf[:n])
}

// request is RTM_GETROUTE for one address.
func request(addr netip.Addr) []byte {
	dst, family := addr.AsSlice(), byte(unix.AF_INET)
	if addr.Is6() {
		family = unix.AF_INET6
	}
	e := binary.NativeEndian
	b := e.AppendUint32(nil, uint32(sizeHeader+sizeRoute+unix.SizeofRtAttr+len(dst)))
	b = e.AppendUint16(b, unix.RTM_GETROUTE)
	b = e.AppendUint16(b, unix.NLM_F_REQUEST)
	b = append(b, make([]byte, sizeHeader-len(b))...) // sequence and sender
	b = append(b, family, byte(8*len(dst)))
	b = append(b, make([]byte, sizeHeader+sizeRoute-len(b))...)
	b = e.AppendUint16(b, uint16(unix.SizeofRtAttr+len(dst)))
	b = e.AppendUint16(b, unix.RTA_DST)
	return append(b, dst...)
}

// answered reads the kernel's answer. No route is none of ours.
func answered(b []byte) (byte, error) {
	if len(b) < sizeHeader+4 {
		return 0, fmt.Errorf("an answer of %d bytes", len(b))
	}
	switch binary.NativeEndian.Uint16(b[4:]) {
	case unix.NLMSG_ERROR:
		switch errno := unix.Errno(-int32(binary.NativeEndian.Uint32(b[sizeHeader:]))); errno {
		case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES:
			return unix.RTN_UNREACHABLE, nil // by the type of a route that forbids it
		default:
			return 0, errno
		}
	case unix.RTM_NEWROUTE:
		if len(b) >= sizeHeader+sizeRoute {
			return b[typeAt], nil
		}
	}
	return 0, fmt.Errorf("an answer of type %d", binary.NativeEndian.Uint16(b[4:]))
}
