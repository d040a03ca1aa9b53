package launch

import (
	"bytes"
	"math"
	"os"
	"slices"
)

// Two kinds of sockets hold what came for them and are in no table: connect(2) to
// AF_UNSPEC takes one of UDP out of its own (__udp_disconnect), and a connection that
// its other end has reset, or that is over, leaves TCP's with all that waits there
// to be read (tcp_done): 5 MB each where rmem_max is 4, also in the queue of a
// listener, where nobody is charged for it. One that was never bound or connected is
// in none either, and empty: nothing tells the one from the other but what the host
// has more of than before.

// growth is of pages that the kernel counts for the whole host, since the fewest
// that were there: what others had before is not ours, and what they have read since
// does not hide what comes for ours later.
// What they read while ours fills hides as much of it for good. Then the host holds
// no more than it did, and a sandbox never more than the limit above that.
type growth struct {
	seen       bool
	least, now int64
}

func (g *growth) see(pages int64) {
	if !g.seen || pages < g.least {
		g.seen, g.least = true, pages
	}
	g.now = pages
}

func (g *growth) bytes() int64 { return (g.now - g.least) * int64(os.Getpagesize()) }

// counts is countsIn, and what has grown. The watchdog has looked before the program
// runs: what that fills until the first look would never be seen otherwise.
func (t *tree) counts(dir string) (counts, bool) {
	c, ok := countsIn(dir)
	if ok {
		t.udp.see(c.packets)
		t.tcp.see(c.pages)
	}
	return c, ok
}

// unfinished is what one datagram takes that is not sent yet.
const unfinished = 1 << 16

// unlisted is how many sockets are in no table.
func (c *counts) unlisted(dir string, l *look) (int64, bool) {
	n := c.others()
	for _, name := range []string{"unix", "netlink"} {
		if n*mostInSocket() < leastSockets {
			return 0, true
		}
		listed, ok := linesOf(dir+name, l)
		if n -= listed; !ok {
			return 0, false
		}
	}
	// Those that were closed between the two are not unlisted: on a busy host the
	// look may have waited there.
	again, ok := countsIn(dir)
	if n -= max(c.others()-again.others(), 0); n <= 0 || !ok {
		return 0, true
	}
	return n, true
}

// inDatagrams is what so many that are unlisted hold if they are UDP's. A program
// that keeps a great many is told as if they were full, and one with a few is not,
// whatever comes for its neighbours.
func (t *tree) inDatagrams(n int64) int64 {
	return n*unfinished + min(n*received().byRequest(), t.udp.bytes())
}

// withUnlisted adds to what the tables show of TCP what is in n sockets that they do
// not show: no more than the namespace in dir has ever sent, whatever comes for others.
// The pages that have come hold what is listed as well, but not the sockets.
func (t *tree) withUnlisted(dir string, listed, n int64, c *counts) int64 {
	most := listed + min(n*received().most(), sentIn(dir))
	if unseenPages() >= 0 { // else the pages mean nothing
		most = min(most, t.tcp.bytes()+c.tcp*socketSize+c.waiting*waitSize)
	}
	return max(listed, most)
}

// sent are the kernel's counters of what a namespace has sent, and what each of a kind
// takes at most where it is received: packets some 1300 bytes beside their data, which
// the kernel may round up to twice as much (sk_buff's truesize).
var sent = [...]struct {
	file, line, name string
	each             int64
}{
	{"snmp", "Ip:", "OutRequests", 2048},
	{"netstat", "IpExt:", "OutOctets", 2},
	{"snmp6", "Ip6OutRequests", "", 2048},
	{"snmp6", "Ip6OutOctets", "", 2},
}

// sentIn is what can lie in all TCP sockets of a namespace: nothing comes from elsewhere,
// and each packet for one socket. Of UDP it would tell little: a datagram can be cut into
// 128 (UDP_SEGMENT), and go to each socket of a group.
func sentIn(dir string) (most int64) {
	for _, c := range sent {
		text, err := readProc(dir + c.file)
		if os.IsNotExist(err) && c.file == "snmp6" {
			continue // no IPv6
		}
		n, ok := counter(text, c.line, c.name)
		if !ok {
			return math.MaxInt64
		}
		most += n * c.each
	}
	return most
}

// counter is the number that stands behind line, or where lines come in twos, names and
// numbers, the one of that name.
func counter(text []byte, line, name string) (int64, bool) {
	at := 0
	for l := range bytes.Lines(text) {
		f := bytes.Fields(l)
		switch {
		case len(f) == 0 || string(f[0]) != line:
		case name == "" || at > 0:
			if at = max(at, 1); at >= len(f) {
				return 0, false
			}
			return number(f[at], 10), true
		default:
			if at = slices.IndexFunc(f, func(n []byte) bool { return string(n) == name }); at < 0 {
				return 0, false
			}
		}
	}
	return 0, false
}
