package launch

import (
	"fmt"
	"math"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUnlisted: sockets that no table lists, and not those that close meanwhile. Of
// the two of netlink one is the kernel's own.
func TestUnlisted(t *testing.T) {
	dir := statDir(t, map[string]string{"unix": "Num RefCount\n1\n2\n3\n", "netlink": netlinkTable, "sockstat": "sockets: used 112\nTCP: inuse 60 tw 0 mem 0\nUDP: inuse 40 mem 0\n"})
	for used, want := range map[int64]int64{
		104: 0, // all are listed
		105: 1,
		109: 5,
		99:  0, // some have come meanwhile
		120: 8, // eight have gone
	} {
		c := counts{used: used, tcp: 60, udp: 40}
		if got, ok := c.unlisted(dir, far()); !ok || got != want {
			t.Errorf("%+v: %d, %v, want %d", c, got, ok, want)
		}
	}
	if _, ok := (&counts{used: 1000}).unlisted(dir, past()); ok {
		t.Error("the tables were read in no time")
	}
}

// TestInDatagrams: each counts as if it held a datagram that is not finished, and
// together what has come for UDP since the start, but no more than they can hold:
// what comes for neighbours makes no flood of seven sockets.
func TestInDatagrams(t *testing.T) {
	page, each := int64(os.Getpagesize()), 2*lastNumber("/proc/sys/net/core/rmem_max")
	all := newTree(0)
	for _, c := range []struct{ pages, n, want int64 }{
		{100, 1, unfinished},
		{110, 5, 5*unfinished + 10*page},
		{90, 5, 5 * unfinished},
		{92, 5, 5*unfinished + 2*page}, // what others have read hides nothing that comes later
		{1 << 30, 7, 7 * (unfinished + each)},
		{1 << 30, 0, 0},
	} {
		all.udp.see(c.pages)
		if got := all.inDatagrams(c.n); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestWithUnlisted: what has come for TCP since the start may be in sockets that
// are not listed, as far as they can hold it; and what is listed counts once.
func TestWithUnlisted(t *testing.T) {
	page := int64(os.Getpagesize())
	each := max(2*lastNumber("/proc/sys/net/core/rmem_max"), lastNumber("/proc/sys/net/ipv4/tcp_rmem"))
	c := counts{tcp: 3, waiting: 4}
	own := 3*int64(socketSize) + 4*waitSize
	all, dir := newTree(0), statDir(t, sentFiles(1<<40, 0))
	all.tcp.see(100)
	for _, c2 := range []struct{ pages, listed, n, want int64 }{
		{100, 5000, 0, 5000},
		{110, 0, 1, 10*page + own},
		{110, 10 * page, 1, 10*page + own},
		{110, 1 << 30, 1, 1 << 30},
		{1 << 30, 7000, 2, 7000 + 2*each},
		{1 << 30, 7000, 0, 7000}, // only others can have it
	} {
		all.tcp.see(c2.pages)
		if got := all.withUnlisted(dir, c2.listed, c2.n, &c); got != c2.want {
			t.Errorf("%+v: %d", c2, got)
		}
	}
}

// sentFiles are the counters of a namespace that has sent so many bytes in as many packets.
func sentFiles(bytes, packets int64) map[string]string {
	return map[string]string{
		"snmp":    fmt.Sprintf("Ip: Forwarding OutRequests OutDiscards\nIp: 9 %d 9\nIcmp: OutRequests\nIcmp: 9\n", packets),
		"netstat": fmt.Sprintf("TcpExt: OutOctets\nTcpExt: 9\nIpExt: InOctets OutOctets\nIpExt: 9 %d\n", bytes),
		"snmp6":   "Ip6InReceives 9\nIp6OutRequests 2\nIp6OutForwDatagrams 9\nIp6InOctets 9\nIp6OutOctets 50\n",
	}
}

// TestSentIn: a namespace's sockets hold no more than was sent there, whatever comes for
// others; where that is not told, as much as they can.
func TestSentIn(t *testing.T) {
	const six = 2*2048 + 2*50
	all := newTree(0)
	all.tcp.see(100)
	all.tcp.see(1 << 30)
	each := max(2*lastNumber("/proc/sys/net/core/rmem_max"), lastNumber("/proc/sys/net/ipv4/tcp_rmem"))
	for name, c := range map[string]struct {
		change func(files map[string]string)
		want   int64
	}{
		"both":               {func(map[string]string) {}, 3*2048 + 2*7000 + six},
		"no IPv6":            {func(f map[string]string) { delete(f, "snmp6") }, 3*2048 + 2*7000},
		"no packets told":    {func(f map[string]string) { delete(f, "snmp") }, 11 * each},
		"no such name":       {func(f map[string]string) { f["netstat"] = "IpExt: InOctets\nIpExt: 9\n" }, 11 * each},
		"no such number":     {func(f map[string]string) { f["netstat"] = "IpExt: InOctets OutOctets\nIpExt: 9\n" }, 11 * each},
		"IPv6 that is other": {func(f map[string]string) { f["snmp6"] = "Ip6OutRequests\n" }, 11 * each},
	} {
		files := sentFiles(7000, 3)
		c.change(files)
		if got := all.withUnlisted(statDir(t, files), 500, 11, &counts{tcp: 2}); got != 500+c.want {
			t.Errorf("%s: %d, want %d", name, got, 500+c.want)
		}
	}
	// The kernel's own: what is sent counts before it is received.
	before := sentIn("/proc/self/net/")
	resetConnections(t, 1)
	if after := sentIn("/proc/self/net/"); before == math.MaxInt64 || after < before+1<<16 {
		t.Errorf("%d before, %d after", before, after)
	}
}

// TestSocketsCountFromTheStart: what fills before the first look is no part of what
// was there.
func TestSocketsCountFromTheStart(t *testing.T) {
	if self := newWatchdog(&Box{}).tree(os.Getpid()); !self.tcp.seen || !self.udp.seen {
		t.Errorf("%+v", self)
	}
}

// resetConnections leaves so many in the queue of a listener, each full and reset.
func resetConnections(t *testing.T, many int) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	roomFor(t, l.(*net.TCPListener), many)
	for range many {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fill(t, c.(*net.TCPConn), 1<<40)
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	return l
}

// roomFor asks for a queue of so many. Package net takes 128 where it cannot read
// net.core.somaxconn: old kernels show it in no network namespace of a user's.
func roomFor(t *testing.T, l *net.TCPListener, many int) {
	t.Helper()
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Listen(int(fd), many) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// TestResetConnections: what was reset before it was read is in no table, and counts:
// with a cgroup until somebody has accepted it, without one always.
func TestResetConnections(t *testing.T) {
	if !alone(t) {
		return
	}
	const many, least = 200, 8 << 20
	self := newTree(os.Getpid())
	self.counts(self.net())
	l := resetConnections(t, many)
	for _, uncharged := range []bool{everySocket, unchargedSocket} {
		self.udp = growth{} // others'
		if got, ok := self.sockets(uncharged, 0, far()); !ok || got < many*unfinished+least {
			t.Errorf("uncharged %v: %d, %v: what was reset is not seen", uncharged, got, ok)
		}
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range many {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	self.udp = growth{}
	if got, ok := self.sockets(unchargedSocket, 0, far()); !ok || got >= many*unfinished+least {
		t.Errorf("%d, %v: what is accepted is charged", got, ok)
	}
	if got, ok := self.sockets(everySocket, 0, far()); !ok || got < many*unfinished+least {
		t.Errorf("%d, %v: what is accepted is not seen", got, ok)
	}
}
