package route

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const own = "an address of this host"

// TestOwn: loopback and every address of an interface is the host's own.
func TestOwn(t *testing.T) {
	for _, s := range []string{"127.0.0.1", "127.1.2.3"} {
		if got := Refused(netip.MustParseAddr(s)); got != own {
			t.Errorf("Refused(%s) = %q", s, got)
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := Refused(p.Addr().Unmap()); got != own {
			t.Errorf("Refused(%s) = %q", p.Addr(), got)
		}
	}
	// Documentation addresses: nobody has them, by whatever route.
	others := []string{"192.0.2.1", "198.51.100.7"}
	if _, err := os.Stat("/proc/net/if_inet6"); err == nil {
		others = append(others, "2001:db8::1")
	}
	for _, s := range others {
		if got := Refused(netip.MustParseAddr(s)); got != "" {
			t.Errorf("Refused(%s) = %q", s, got)
		}
	}
	if got := Refused(netip.MustParseAddr("255.255.255.255")); got != "an address of several hosts" {
		t.Errorf("broadcast: %q", got)
	}
}

// TestUnclear: what cannot be told is refused.
func TestUnclear(t *testing.T) {
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("fe80::1%lo"), netip.MustParseAddr("::ffff:127.0.0.1")} {
		if Refused(a) == "" {
			t.Errorf("%v is not refused", a)
		}
	}
	good := make([]byte, sizeHeader+sizeRoute)
	good[4], good[typeAt] = unix.RTM_NEWROUTE, unix.RTN_LOCAL
	if kind, err := answered(good); kind != unix.RTN_LOCAL || err != nil {
		t.Errorf("%d, %v", kind, err)
	}
	failed := make([]byte, sizeHeader+4)
	failed[4] = unix.NLMSG_ERROR
	for _, b := range [][]byte{nil, good[:sizeHeader], good[:sizeHeader+8], make([]byte, sizeHeader+sizeRoute), failed} {
		if kind, err := answered(b); err == nil {
			t.Errorf("%x is the type %d", b, kind)
		}
	}
}
