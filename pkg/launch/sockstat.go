package launch

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// The tables of TCP are the whole host's: to list three connections of a sandbox the
// kernel walks a hash table of some 100,000 buckets, twice, for 9 ms of CPU time on
// a small machine and 20 to 85 on a busy one. That was done every 20 ms for each of
// 64 sandboxes and left no CPU to anybody. The kernel also counts what TCP holds,
// for the whole host and in pages, in a file that costs some microseconds: no
// sandbox can hold more than everybody together. So the tables are read only where
// that would pass the limit.

// counts is /proc/PID/net/sockstat and sockstat6. Numbers of sockets are the
// namespace's, the pages are the whole host's, of both families.
type counts struct {
	used    int64 // sockets of every kind, those without a descriptor among them
	tcp     int64 // that are in TCP's tables
	udp     int64
	waiting int64 // TIME_WAIT
	pages   int64 // that TCP holds, -1 when the kernel does not say
	packets int64 // pages that wait in sockets of UDP to be read
}

// oddUsed is a number of sockets that nobody has.
const oddUsed = 1 << 32

// countsIn is false when the namespace is gone.
func countsIn(dir string) (c counts, ok bool) {
	four, err := readProc(dir + "sockstat")
	if err != nil {
		return c, false
	}
	six, _ := readProc(dir + "sockstat6") // not there without IPv6
	known := true
	get := func(text []byte, line, name string) int64 {
		n, found := sockstat(text, line, name)
		known = known && (found || len(text) == 0)
		return n
	}
	c = counts{
		used: get(four, "sockets:", "used"), waiting: get(four, "TCP:", "tw"), pages: get(four, "TCP:", "mem"),
		tcp: get(four, "TCP:", "inuse") + get(six, "TCP6:", "inuse"),
		udp: get(four, "UDP:", "inuse") + get(six, "UDP6:", "inuse"), packets: get(four, "UDP:", "mem"),
	}
	if !known || len(four) == 0 {
		return counts{used: oddUsed, tcp: oddUsed, pages: -1}, true // not the files that we know: look at the tables
	}
	return c, true
}

// sockstat is the number after a name in a line.
func sockstat(text []byte, line, name string) (int64, bool) {
	for l := range bytes.Lines(text) {
		f := bytes.Fields(l)
		if len(f) == 0 || string(f[0]) != line {
			continue
		}
		for i := 1; i+1 < len(f); i += 2 {
			if string(f[i]) == name {
				return number(f[i+1], 10), true
			}
		}
	}
	return 0, false
}

// mostTCP is what the TCP sockets of the namespace hold at most, and false when that
// cannot be told. Beside each socket there may be a request for a connection, whose
// other end is a socket too.
func (c *counts) mostTCP() (int64, bool) {
	unseen := unseenPages()
	if c.pages < 0 || unseen < 0 {
		return 0, false
	}
	return (c.pages+unseen)*int64(os.Getpagesize()) + c.used*2*socketSize + c.waiting*waitSize, true
}

// others is the sockets that are in no table of TCP's or UDP's.
func (c *counts) others() int64 { return c.used - c.tcp - c.udp }

// linesOf counts the lines of a table but for the headings and, in netlink's, the
// kernel's own sockets, whose third field is 0: they are not among those that are
// used, and eight sockets of the program's would be taken for them.
func linesOf(path string, l *look) (n int64, ok bool) {
	own := strings.HasSuffix(path, "netlink")
	s := socketTable{name: path, read: func(f [][]byte) inSocket {
		if own && len(f) > 2 && string(f[2]) == "0" {
			return inSocket{}
		}
		return inSocket{bytes: 1}
	}}
	sum, ok := s.sum("", everySocket, l)
	return sum.bytes, ok
}

// unseenPages is by how much the kernel's count may be too low: since Linux 6.0 each
// CPU keeps up to a MiB to itself, or what net.core.mem_pcpu_rsv says since 6.7
// (sk_memory_allocated_add in include/net/proto_memory.h). It is -1 when the count
// means nothing: from 6.19 on sockets can be left out (net.core.bypass_prot_mem).
var unseenPages = sync.OnceValue(func() int64 {
	return unseen("/proc/sys/net/core/", "/sys/devices/system/cpu/online")
})

func unseen(settings, online string) int64 {
	// "0-3,8": the last one tells how many there are at most.
	text, err := os.ReadFile(online)
	list := strings.FieldsFunc(string(text), func(c rune) bool { return c < '0' || c > '9' })
	if err != nil || len(list) == 0 || lastNumber(settings+"bypass_prot_mem") > 0 {
		return -1
	}
	last, err := strconv.ParseInt(list[len(list)-1], 10, 32)
	if err != nil {
		return -1
	}
	each := lastNumber(settings + "mem_pcpu_rsv")
	if each < 0 {
		each = 1 << 20 / int64(os.Getpagesize())
	}
	return (last + 1) * each
}
