package egress

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// wire sees every packet that comes from the host, whoever it is for.
type wire struct {
	w     *world
	mu    sync.Mutex
	seen  map[string]int
	marks map[string]bool
	count int
}

func (w *world) tap() *wire {
	w.t.Helper()
	var fd int
	err := w.internet.do(func() (err error) {
		i, err := net.InterfaceByName("i0")
		if err != nil {
			return err
		}
		all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(all)); err != nil {
			return err
		}
		// A whole test's packets wait here while the reader does not run.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	})
	if err != nil {
		w.t.Fatalf("packet socket: %v", err)
	}
	f := os.NewFile(uintptr(fd), "packets")
	w.t.Cleanup(func() { f.Close() })
	x := &wire{w: w, seen: map[string]int{}, marks: map[string]bool{}}
	go x.read(f)
	return x
}

func (x *wire) read(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 128)
	for {
		var n int
		var from unix.Sockaddr
		var rerr error
		err := raw.Read(func(fd uintptr) bool {
			n, from, rerr = unix.Recvfrom(int(fd), buf, 0)
			return rerr != unix.EAGAIN
		})
		if err != nil {
			return
		}
		if l, ok := from.(*unix.SockaddrLinklayer); rerr != nil || !ok || l.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		x.note(buf[:n])
	}
}

// note keeps "tcp ADDR:PORT" and the like, of the destination.
func (x *wire) note(b []byte) {
	var proto byte
	var dst netip.Addr
	var rest []byte
	switch {
	case len(b) >= 28 && b[0]>>4 == 4:
		proto, dst, rest = b[9], netip.AddrFrom4([4]byte(b[16:20])), b[int(b[0]&15)*4:]
	case len(b) >= 48 && b[0]>>4 == 6:
		proto, dst, rest = b[6], netip.AddrFrom16([16]byte(b[24:40])), b[40:]
	default:
		return // ARP
	}
	if dst.Is6() && proto == unix.IPPROTO_HOPOPTS || proto == unix.IPPROTO_ICMPV6 && rest[0] >= 130 {
		return // multicast listeners and neighbours: the host's own kernel
	}
	kind := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_ICMP: "icmp", unix.IPPROTO_ICMPV6: "icmp6"}[proto]
	key := fmt.Sprintf("ip%d %v", proto, dst)
	if kind == "tcp" || kind == "udp" {
		key = kind + " " + netip.AddrPortFrom(dst, binary.BigEndian.Uint16(rest[2:])).String()
	} else if kind != "" {
		key = kind + " " + dst.String()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if mark, ok := strings.CutPrefix(string(rest[min(8, len(rest)):]), "mark "); ok && kind == "udp" {
		x.marks[mark] = true
		return
	}
	x.seen[key]++
}

// arrived is where anything went since the last call, sorted. A packet of the
// test's own is sent behind all others and waited for.
func (x *wire) arrived(t *testing.T) []string {
	t.Helper()
	x.mu.Lock()
	x.count++
	mark := fmt.Sprint(x.count)
	x.mu.Unlock()
	err := x.w.host.do(func() error {
		c, err := net.Dial("udp", server+":9")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("mark " + mark))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the test's own packet", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.marks[mark]
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []string
	for key := range x.seen {
		list = append(list, key)
	}
	x.seen = map[string]int{}
	slices.Sort(list)
	return list
}

// only fails the test when something arrived elsewhere than at the name server
// and at want, or nothing at one of want.
func (x *wire) only(t *testing.T, want ...string) {
	t.Helper()
	got := x.arrived(t)
	for _, s := range got {
		if s != "udp "+server+":53" && !slices.Contains(want, s) {
			t.Errorf("a packet arrived at %s", s)
		}
	}
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("nothing arrived at %s, only at %v", s, got)
		}
	}
}
