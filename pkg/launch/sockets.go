package launch

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"
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
func (t *tree) sockets(uncharged bool, deadline time.Time) (int64, bool) {
	dir := "/proc/" + strconv.Itoa(t.init) + "/net/"
	if n := socketsIn(dir); n*mostInSocket() < leastSockets {
		return 0, true // the tables are not for nothing: TCP's are walked for the whole host
	}
	var sum int64
	for _, table := range socketTables {
		n, ok := table.sum(dir, uncharged, deadline)
		if !ok {
			return sum, false
		}
		sum += n
	}
	return sum, true
}

// leastSockets is what may be left out of account.
const leastSockets = 1 << 20

// sum reads a table line by line: it can be of any length, and the supervisor's
// memory must not depend on it.
func (s *socketTable) sum(dir string, uncharged bool, deadline time.Time) (sum int64, ok bool) {
	f, err := os.Open(dir + s.name)
	if err != nil {
		return 0, true // no IPv6, or init is gone
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the headings
	for i := 0; lines.Scan(); i++ {
		if i%256 == 0 && time.Now().After(deadline) {
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

// socketsIn counts the sockets of a network namespace: "sockets: used N".
func socketsIn(dir string) int64 {
	text, err := os.ReadFile(dir + "sockstat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 3 {
		return 1 << 32 // not the file that we know: look at the tables
	}
	return number(f[2], 10)
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
