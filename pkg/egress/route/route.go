// Package route asks the kernel whether an address is the host's own. A public
// one may be: what listens on it is often open to the machine itself alone,
// behind a firewall that lets everything from loopback through, and a connection
// of the supervisor comes from the machine itself.
package route

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"sandglass/internal/sys"

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
	dst := addr.AsSlice()
	rt := unix.RtMsg{Family: sys.RouteFamily(dst), Dst_len: uint8(8 * len(dst))}
	reply, err := sys.AskRoutes(unix.RTM_GETROUTE, 0, rt, sys.RouteAttr{Kind: unix.RTA_DST, Data: dst})
	if err != nil {
		return 0, err
	}
	return answered(reply)
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
