package sys

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// RouteAttr is one attribute of a route, see rtnetlink(7).
type RouteAttr struct {
	Kind uint16
	Data []byte // 4 or 16 bytes
}

// RouteFamily is the family of an address of 4 or 16 bytes.
func RouteFamily(addr []byte) uint8 {
	if len(addr) == 16 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// AskRoutes sends one message of rtnetlink and returns what the kernel answers.
// Its errors are errnos.
func AskRoutes(kind, flags uint16, rt unix.RtMsg, attrs ...RouteAttr) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, routeMessage(kind, flags, rt, attrs), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	// The kernel has answered when the send returns: never wait here.
	n, from, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
	if err != nil {
		return nil, err
	}
	if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != 0 {
		return nil, unix.EBADMSG // not the kernel's
	}
	return buf[:n], nil
}

func routeMessage(kind, flags uint16, rt unix.RtMsg, attrs []RouteAttr) []byte {
	n := binary.NativeEndian
	b := make([]byte, unix.SizeofNlMsghdr, 64)
	n.PutUint16(b[4:], kind)
	n.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	b = append(b, rt.Family, rt.Dst_len, rt.Src_len, rt.Tos, rt.Table, rt.Protocol, rt.Scope, rt.Type)
	b = n.AppendUint32(b, rt.Flags)
	for _, a := range attrs {
		b = n.AppendUint16(b, uint16(unix.SizeofRtAttr+len(a.Data)))
		b = n.AppendUint16(b, a.Kind)
		b = append(b, a.Data...)
	}
	n.PutUint32(b, uint32(len(b)))
	return b
}

// loopbackIndex is lo's, the first interface of every network namespace
// (LOOPBACK_IFINDEX of include/net/flow.h).
const loopbackIndex = 1

// AddLocalRoute makes every address of a prefix the network namespace's own, on
// lo, as "ip route add local PREFIX dev lo" does. addr is 4 or 16 bytes long. It
// needs CAP_NET_ADMIN.
func AddLocalRoute(addr []byte, bits int) error {
	rt := unix.RtMsg{
		Family: RouteFamily(addr), Dst_len: uint8(bits), Table: unix.RT_TABLE_LOCAL,
		Protocol: unix.RTPROT_BOOT, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL,
	}
	reply, err := AskRoutes(unix.RTM_NEWROUTE, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL, rt,
		RouteAttr{unix.RTA_DST, addr}, RouteAttr{unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopbackIndex)})
	if err != nil {
		return err
	}
	// The acknowledgement is an NLMSG_ERROR whose number is 0.
	if len(reply) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(reply[4:]) != unix.NLMSG_ERROR {
		return unix.EBADMSG
	}
	if number := int32(binary.NativeEndian.Uint32(reply[unix.SizeofNlMsghdr:])); number != 0 {
		return unix.Errno(-number)
	}
	return nil
}
