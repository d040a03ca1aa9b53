package launch

import (
	"bufio"
	"bytes"
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
	read func(fields [][]byte) (bytes int64, orphan bool)
	// charged: a cgroup counts what lies in these sockets, but for orphans, which
	// no process has a descriptor of: TCP connections are charged when they are
	// accepted (sk_clone in net/core/sock.c).
	charged bool
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
	dir := "/proc/" + strconv.Itoa(t.init) + "/net/"
	c, ok := countsIn(dir)
	if !ok || c.used*mostInSocket() < leastSockets {
		return 0, true
	}
	sum, ok := tablesOf(socketTables, dir, uncharged, l)
	if !ok {
		return sum, false
	}
	unlisted, ok := t.unlisted(&c, dir, l)
	if sum += unlisted; !ok || c.tcp+c.waiting == 0 {
		return sum, ok
	}
	if most, ok := c.mostTCP(); ok && sum+most <= left {
		return sum + c.tcp*socketSize + c.waiting*waitSize, true
	}
	tcp, ok := tablesOf(tcpTables, dir, uncharged, l)
	return sum + tcp, ok
}

// tablesOf adds tables up.
func tablesOf(list []socketTable, dir string, uncharged bool, l *look) (sum int64, ok bool) {
	for _, table := range list {
		n, ok := table.sum(dir, uncharged, l)
		if sum += n; !ok {
			return sum, false
		}
	}
	return sum, true
}

// leastSockets is what may be left out of account.
const leastSockets = 1 << 20

// sum reads a table line by line: it can be of any length, and the supervisor's
// memory must not depend on it.
func (s *socketTable) sum(dir string, uncharged bool, l *look) (sum int64, ok bool) {
	f, err := os.Open(dir + s.name)
	if err != nil {
		return 0, true // no IPv6, or init is gone
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the headings
	for i := 0; lines.Scan(); i++ {
		if i%256 == 0 && l.over() {
			return sum, false
		}
		n, orphan := s.read(bytes.Fields(lines.Bytes()))
		if !s.charged || !uncharged || orphan {
			sum += n
		}
	}
	return sum, true
}

// netlinkSocket: sk Eth Pid Groups Rmem Wmem ...
func netlinkSocket(f [][]byte) (int64, bool) {
	if len(f) < 6 {
		return 0, false
	}
	return number(f[4], 10) + number(f[5], 10), false
}

// States of TCP.
const (
	tcpTimeWait = "06"
	tcpListen   = "0A" // its queues are numbers of connections
)

// inetSocket: sl local_address rem_address st tx_queue:rx_queue tr:tm->when
// retrnsmt uid timeout inode ...
func inetSocket(f [][]byte) (int64, bool) {
	if len(f) < 10 || string(f[3]) == tcpListen {
		return 0, false
	}
	if string(f[3]) == tcpTimeWait {
		return waitSize, true
	}
	out, in, _ := bytes.Cut(f[4], []byte(":"))
	return number(out, 16) + number(in, 16) + socketSize, string(f[9]) == "0"
}

func number(text []byte, base int) int64 {
	n, _ := strconv.ParseInt(string(text), base, 64)
	return n
}

// mostInSocket is what one socket can hold by the host's settings. The kernel
// doubles what a program asks for.
var mostInSocket = sync.OnceValue(func() int64 {
	most := int64(0)
	for _, way := range []string{"r", "w"} {
		asked, tuned := lastNumber("/proc/sys/net/core/"+way+"mem_max"), lastNumber("/proc/sys/net/ipv4/tcp_"+way+"mem")
		if asked <= 0 || tuned <= 0 {
			return 1 << 30
		}
		most += max(2*asked, tuned)
	}
	return most
})

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
