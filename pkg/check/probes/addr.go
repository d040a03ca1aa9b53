package probes

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Addr is an IP address, 4 or 16 bytes, and a port. net/netip would do, but it
// builds tables when the process starts, which every run would pay for.
type Addr struct {
	IP   []byte
	Port uint16
}

// Loopback4 is 127.0.0.1.
func Loopback4(port uint16) Addr { return Addr{[]byte{127, 0, 0, 1}, port} }

// Loopback6 is ::1.
func Loopback6(port uint16) Addr { return Addr{append(make([]byte, 15), 1), port} }

func (a Addr) String() string {
	var parts []string
	if len(a.IP) == 4 {
		for _, b := range a.IP {
			parts = append(parts, strconv.Itoa(int(b)))
		}
		return strings.Join(parts, ".") + ":" + strconv.Itoa(int(a.Port))
	}
	for i := 0; i+1 < len(a.IP); i += 2 {
		parts = append(parts, strconv.FormatUint(uint64(a.IP[i])<<8|uint64(a.IP[i+1]), 16))
	}
	return "[" + strings.Join(parts, ":") + "]:" + strconv.Itoa(int(a.Port))
}

// parseAddr reads what String writes.
func parseAddr(s string) (a Addr, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return a, false
	}
	port, err := strconv.ParseUint(s[i+1:], 10, 16)
	a.Port = uint16(port)
	a.IP = ParseIP(strings.Trim(s[:i], "[]"))
	return a, err == nil && a.IP != nil
}

// ParseIP reads an address; nil is none.
func ParseIP(s string) []byte {
	if strings.Contains(s, ":") {
		return parse6(s)
	}
	var ip []byte
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return nil
		}
		ip = append(ip, byte(n))
	}
	if len(ip) != 4 {
		return nil
	}
	return ip
}

func parse6(s string) []byte {
	left, right, gap := strings.Cut(s, "::")
	head, ok1 := groups(left)
	tail, ok2 := groups(right)
	n := len(head) + len(tail)
	if !ok1 || !ok2 || n > 16 || gap == (n == 16) {
		return nil
	}
	return append(append(head, make([]byte, 16-n)...), tail...)
}

func groups(s string) (b []byte, ok bool) {
	if s == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(s, ":") {
		n, err := strconv.ParseUint(part, 16, 16)
		if err != nil {
			return nil, false
		}
		b = append(b, byte(n>>8), byte(n))
	}
	return b, true
}

// socket makes a socket that does not block, and the kernel's form of a.
func (a Addr) socket(kind int) (fd int, to unix.Sockaddr, err error) {
	family := unix.AF_INET6
	if len(a.IP) == 4 {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port), Addr: [4]byte(a.IP)}
	} else {
		to = &unix.SockaddrInet6{Port: int(a.Port), Addr: [16]byte(a.IP)}
	}
	fd, err = unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	return fd, to, err
}
