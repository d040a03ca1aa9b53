package denials

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// maxAddress is struct sockaddr_storage.
const maxAddress = 128

// argsUDP tells a socket of UDP from one that makes a connection.
const argsUDP = "UDP"

// connects notes a connection that leads out: the sandbox's network has loopback,
// what stands for listed hosts, and no route, so one to anywhere else fails with
// ENETUNREACH.
//
// To connect a socket of UDP sends nothing. Libraries do it to learn which of a
// name's addresses they would send from (RFC 6724), at any port that comes to their
// mind: where that succeeds nothing was tried, and where it fails the row says what
// it was.
func (w *Watch) connects(n *sys.Notification) {
	size := min(n.Args[2]&0xffffffff, maxAddress)
	if size < 4 {
		return
	}
	buf := make([]byte, size)
	got, err := unix.ProcessVMReadv(int(n.PID), []unix.Iovec{{Base: &buf[0], Len: size}},
		[]unix.RemoteIovec{{Base: uintptr(n.Args[1]), Len: int(size)}}, 0)
	if err != nil {
		return
	}
	to := unreachable(buf[:got])
	if to == "" {
		return
	}
	r := row{kind: "host", what: to, errno: "ENETUNREACH"}
	addr := address(buf[:got])
	local := slices.ContainsFunc(w.Local, func(p netip.Prefix) bool { return p.Contains(addr) })
	if local {
		// First: most are to what is listed, and nothing more need be asked of them.
		if r.what, r.errno = w.unlisted(addr, binary.BigEndian.Uint16(buf[2:]), to), ""; r.what == "" {
			return
		}
	}
	r.program = program(n.PID)
	if w.isUDP(n) {
		r.args = argsUDP
	}
	if local && r.args == argsUDP || !sys.NotificationValid(w.listener, n.ID) {
		return
	}
	w.seen.add(r)
}

// isUDP asks the kernel what the call's socket is: sockets have an attribute with
// the name of their protocol. The descriptor is the program's, which can exchange it
// meanwhile, and deceives its own report with that.
func (w *Watch) isUDP(n *sys.Notification) bool {
	const attr = "system.sockprotoname"
	path := "/proc/" + strconv.Itoa(int(n.PID)) + "/fd/" + strconv.Itoa(int(int32(n.Args[0])))
	var buf [16]byte
	got, err := unix.Getxattr(path, attr, buf[:])
	text := string(buf[:max(got, 0)])
	if err == unix.EACCES && w.Getxattr != nil {
		text, _ = w.Getxattr(path, attr, len(buf))
	}
	return strings.HasPrefix(text, "UDP") // or UDPv6, and a NUL
}

// address is that of a socket address that unreachable has found whole.
func address(b []byte) netip.Addr {
	at, size := 4, 4
	if binary.NativeEndian.Uint16(b) == unix.AF_INET6 {
		at, size = 8, 16
	}
	addr, _ := netip.AddrFromSlice(b[at : at+size])
	return addr.Unmap()
}

// unlisted is a listed host with a port that no rule has: the kernel inside refuses
// the connection, and nobody else hears of it. Nothing is reached at port 0.
func (w *Watch) unlisted(addr netip.Addr, port uint16, to string) string {
	if _, listed := slices.BinarySearch(w.Ports, port); listed || port == 0 {
		return ""
	}
	if name, ok := w.NameOf(addr); ok {
		return name + ":" + number(uint64(port))
	}
	return to
}

// unreachable is the address of a socket address that leads out, "" for others.
func unreachable(b []byte) string {
	if len(b) < 4 {
		return ""
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= 8:
		return unreachable4(b[4:8], port)
	case family == unix.AF_INET6 && len(b) >= 24:
		return unreachable6(b[8:24], port)
	}
	return ""
}

func unreachable4(ip []byte, port uint16) string {
	if ip[0] == 127 || ip[0] == 0 {
		return ""
	}
	var parts []string
	for _, b := range ip {
		parts = append(parts, number(uint64(b)))
	}
	return strings.Join(parts, ".") + ":" + number(uint64(port))
}

func unreachable6(ip []byte, port uint16) string {
	zeros := 0
	for zeros < len(ip) && ip[zeros] == 0 {
		zeros++
	}
	switch {
	case zeros == 10 && ip[10] == 0xff && ip[11] == 0xff:
		return unreachable4(ip[12:], port)
	case zeros == 16 || zeros == 15 && ip[15] == 1:
		return ""
	}
	var parts []string
	for i := 0; i < len(ip); i += 2 {
		parts = append(parts, strconv.FormatUint(uint64(binary.BigEndian.Uint16(ip[i:])), 16))
	}
	return "[" + strings.Join(parts, ":") + "]:" + number(uint64(port))
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
