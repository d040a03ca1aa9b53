package launch

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"strconv"
	"sync"
)

// The kernel charges no cgroup for what waits in a netlink socket, in a datagram
// that is not finished, in a socket's queue of errors, or in a TCP connection
// that nobody has accepted. Each is bounded for one socket only, by settings of
// the whole host (rmem_max, wmem_max), and a sandbox may have some ten thousand
// sockets: that is all memory of most hosts, and the out-of-memory killer would
// take the host's own processes for it. So the supervisor looks at the tables of
// the sandbox's network namespace.

// socketTable is a file of /proc/PID/net with one socket in each line.
type socketTable struct {
	name string
	read func(fields [][]byte) inSocket
	// charged: a cgroup counts what lies in these sockets, but for orphans, which
	// no process has a descriptor of: TCP connections are charged when they are
	// accepted (sk_clone in net/core/sock.c).
	charged bool
}

// inSocket is what a line says of a socket.
type inSocket struct {
	bytes  int64
	queue  int64 // connections to a listener that nobody has accepted
	orphan bool
}

// What the kernel shows is the memory that the packets take, but for TCP, which
// shows bytes of data.
var socketTables = []socketTable{
	{name: "netlink", read: netlinkSocket},
	{name: "udp", read: inetSocket},
	{name: "udp6", read: inetSocket},
}

// tcpTables are walked for the whole host, see counts.
var tcpTables = []socketTable{
	{name: "tcp", read: inetSocket, charged: true},
	{name: "tcp6", read: inetSocket, charged: true},
}

// net is where the tables of the sandbox's network namespace are.
func (t *tree) net() string { return procOf(t.init) + "/net/" }

// Which sockets count.
const (
	everySocket     = false
	unchargedSocket = true
)

// What a TCP socket itself takes, about, and what is left of one in TIME_WAIT.
const (
	socketSize = 2500
	waitSize   = 256
)

// sockets is what the network sockets hold, and whether that was known in time.
// Where TCP's hold less than is left of the limit by the kernel's own count, that
// they do not pass it is all that is known of them.
func (t *tree) sockets(uncharged bool, left int64, l *look) (int64, bool) {
	dir := t.net()
	c, ok := t.counts(dir)
	if !ok || c.used*mostInSocket() < leastSockets {
		return 0, true
	}
	tables, ok := tablesOf(socketTables, dir, uncharged, l)
	if !ok {
		return tables.bytes, false
	}
	unlisted, ok := c.unlisted(dir, l)
	sum := tables.bytes + t.inDatagrams(unlisted)
	if !ok || c.tcp+c.waiting+unlisted == 0 {
		return sum, ok
	}
	if most, ok := c.mostTCP(); ok && sum+most <= left {
		return sum + c.tcp*socketSize + c.waiting*waitSize, true
	}
	tcp, ok := tablesOf(tcpTables, dir, uncharged, l)
	if uncharged { // a cgroup is charged for the others
		unlisted = min(unlisted, tcp.queue)
	}
	return sum + t.withUnlisted(dir, tcp.bytes, unlisted, &c), ok
}

// tablesOf adds tables up.
func tablesOf(list []socketTable, dir string, uncharged bool, l *look) (sum inSocket, ok bool) {
	for _, table := range list {
		n, ok := table.sum(dir, uncharged, l)
		sum.bytes += n.bytes
		sum.queue += n.queue
		if !ok {
			return sum, false
		}
	}
	return sum, true
}

// leastSockets is what may be left out of account.
const leastSockets = 1 << 20

// sum reads a table line by line: it can be of any length, and the supervisor's
// memory must not depend on it.
func (s *socketTable) sum(dir string, uncharged bool, l *look) (sum inSocket, ok bool) {
	f, err := os.Open(dir + s.name)
	if err != nil {
		return sum, true // no IPv6, or init is gone
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the headings
	for i := 0; lines.Scan(); i++ {
		if i%256 == 0 && l.over() {
			return sum, false
		}
		n := s.read(bytes.Fields(lines.Bytes()))
		sum.queue += n.queue
		if !s.charged || !uncharged || n.orphan {
			sum.bytes += n.bytes
		}
	}
	return sum, true
}

// netlinkSocket: sk Eth Pid Groups Rmem Wmem ...
func netlinkSocket(f [][]byte) (s inSocket) {
	if len(f) >= 6 {
		s.bytes = number(f[4], 10) + number(f[5], 10)
	}
	return s
}

// States of TCP.
const (
	tcpTimeWait = "06"
	tcpListen   = "0A" // its queues are numbers of connections
)

// inetSocket: sl local_address rem_address st tx_queue:rx_queue tr:tm->when
// retrnsmt uid timeout inode ...
func inetSocket(f [][]byte) inSocket {
	if len(f) < 10 {
		return inSocket{}
	}
	out, in, _ := bytes.Cut(f[4], []byte(":"))
	switch string(f[3]) {
	case tcpListen:
		return inSocket{queue: number(in, 16)}
	case tcpTimeWait:
		return inSocket{bytes: waitSize, orphan: true}
	}
	return inSocket{bytes: number(out, 16) + number(in, 16) + socketSize, orphan: string(f[9]) == "0"}
}

func number(text []byte, base int) int64 {
	n, _ := strconv.ParseInt(string(text), base, 64)
	return n
}

// mostInSocket is what one socket can hold by the host's settings.
var mostInSocket = sync.OnceValue(func() int64 {
	in, out := buffersOf("r"), buffersOf("w")
	if in == unknownBuffers || out == unknownBuffers {
		return 1 << 30
	}
	return in.most() + out.most()
})

// received is what one socket can have received by them.
var received = sync.OnceValue(func() buffers { return buffersOf("r") })

// buffers are the host's settings for one direction of a socket.
type buffers struct{ asked, tuned int64 }

// unknownBuffers are those of a host that does not say.
var unknownBuffers = buffers{math.MaxInt32, math.MaxInt32}

// buffersOf reads them for "r" or "w".
func buffersOf(way string) buffers {
	b := buffers{lastNumber("/proc/sys/net/core/" + way + "mem_max"), lastNumber("/proc/sys/net/ipv4/tcp_" + way + "mem")}
	if b.asked <= 0 || b.tuned <= 0 {
		return unknownBuffers
	}
	return b
}

// byRequest is what a program can have by asking: the kernel doubles it.
func (b buffers) byRequest() int64 { return 2 * b.asked }

// most is that, or what the kernel gives TCP by itself.
func (b buffers) most() int64 { return max(b.byRequest(), b.tuned) }

// lastNumber is the last word of a file.
func lastNumber(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	f := bytes.Fields(text)
	if len(f) == 0 {
		return -1
	}
	return number(f[len(f)-1], 10)
}
