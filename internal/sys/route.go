package sys

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// loopbackIndex is lo's, the first interface of every network namespace
// (LOOPBACK_IFINDEX of include/net/flow.h).
const loopbackIndex = 1

// AddLocalRoute makes every address of a prefix the network namespace's own, on
// lo, as "ip route add local PREFIX dev lo" does. addr is 4 or 16 bytes long. It
// needs CAP_NET_ADMIN.
func AddLocalRoute(addr []byte, bits int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, localRoute(addr, bits), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	return routeAnswer(fd)
}

// localRoute is an RTM_NEWROUTE message, see rtnetlink(7).
func localRoute(addr []byte, bits int) []byte {
	family := byte(unix.AF_INET)
	if len(addr) == 16 {
		family = unix.AF_INET6
	}
	n := binary.NativeEndian
	b := make([]byte, unix.NLMSG_HDRLEN, 64)
	n.PutUint16(b[4:], unix.RTM_NEWROUTE)
	n.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b = append(b, family, byte(bits), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0)
	b = n.AppendUint16(b, uint16(unix.SizeofRtAttr+len(addr)))
	b = n.AppendUint16(b, unix.RTA_DST)
	b = append(b, addr...)
	b = n.AppendUint16(b, unix.SizeofRtAttr+4)
	b = n.AppendUint16(b, unix.RTA_OIF)
	b = n.AppendUint32(b, loopbackIndex)
	n.PutUint32(b, uint32(len(b)))
	return b
}

// routeAnswer reads the acknowledgement: an NLMSG_ERROR whose number is 0.
func routeAnswer(fd int) error {
	buf := make([]byte, 1<<10)
	got, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return err
	}
	if got < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(buf[4:]) != unix.NLMSG_ERROR {
		return unix.EBADMSG
	}
	if number := int32(binary.NativeEndian.Uint32(buf[unix.NLMSG_HDRLEN:])); number != 0 {
		return unix.Errno(-number)
	}
	return nil
}
