package relay

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestPortIsNotBound: the kernel chooses local ports in connect(2) from one half of
// what there is, and those for bind(2) from the other, as long as there are any
// (__inet_hash_connect and inet_csk_find_open_port in the kernel).
func TestPortIsNotBound(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	least, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	for network, at := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Logf("%s: %v", network, err)
			continue
		}
		defer l.Close()
		for range 8 {
			c, err := dial(t.Context(), net.Dialer{}, network, l.Addr().(*net.TCPAddr).AddrPort())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if port := netip.MustParseAddrPort(c.LocalAddr().String()).Port(); (int(port)-least)%2 != 0 {
				t.Errorf("%s: port %d of those from %d on was bound", network, port, least)
			}
		}
	}
}
