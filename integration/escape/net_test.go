package escape

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// listener accepts on an address of the host and counts.
type listener struct {
	net.Listener
	got chan string
}

func listen(t *testing.T, network, address string) *listener {
	t.Helper()
	n, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Listener: n, got: make(chan string, 16)}
	t.Cleanup(func() { n.Close() })
	go func() {
		for {
			c, err := n.Accept()
			if err != nil {
				close(l.got)
				return
			}
			l.got <- c.RemoteAddr().String()
			c.Close()
		}
	}()
	return l
}

// nobody closes the listener and says whether anything ever came.
func (l *listener) nobody(t *testing.T) {
	t.Helper()
	// A connection made before this one is accepted before it.
	l.Listener.Close()
	for from := range l.got {
		t.Errorf("a connection arrived at %v from %q", l.Addr(), from)
	}
}

func TestNetworkIsLoopbackAlone(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		l := listen(t, "tcp4", "0.0.0.0:0")
		port := l.Addr().(*net.TCPAddr).Port
		var tries []try
		for _, ip := range hostAddresses(t) {
			tries = append(tries, try{fmt.Sprintf("connect:%s:%d", ip, port), "ENETUNREACH"})
		}
		tries = append(tries, try{fmt.Sprintf("connect:127.0.0.1:%d", port), "ECONNREFUSED"},
			try{fmt.Sprintf("connect:127.8.9.1:%d", port), "ECONNREFUSED"},
			try{"connect:169.254.169.254:80", "ENETUNREACH"}, try{"connect:10.0.0.1:80", "ENETUNREACH"},
			try{"connect:192.0.2.1:443", "ENETUNREACH"}, try{"connect:8.8.8.8:53", "ENETUNREACH"},
			try{"connect:[2001:db8::1]:443", "ENETUNREACH"}, try{"connect:[fe80::1]:80", "EINVAL"})
		attempt(t, who, nil, tries)
		l.nobody(t)
		o := must(t, testkit.Sh(t, who, "tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route | wc -l"))
		if want := "    lo\n0\n"; o.Stdout != want {
			t.Errorf("devices and routes %q, want %q", o.Stdout, want)
		}
	})
}

// hostAddresses are the host's own, loopback left out.
func hostAddresses(t *testing.T) []string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			list = append(list, ip.IP.String())
		}
	}
	return list
}

func TestLoopbackWorksInside(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		// Nothing listens, but the way there is open: refused, not unreachable.
		attempt(t, who, nil, []try{{"connect:127.0.0.1:9", "ECONNREFUSED"}, {"connect:[::1]:9", "ECONNREFUSED"}})
	})
}

// Abstract sockets belong to the network namespace, others to the file system.
func TestUnixSocketsOfTheHostAreOutOfReach(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		abstract := listen(t, "unix", fmt.Sprintf("@sandglass-test-%d-%s", os.Getpid(), who.Name))
		dir := testkit.Dir(t)
		path := listen(t, "unix", dir+"/socket")
		if err := os.Chmod(dir+"/socket", 0o777); err != nil {
			t.Fatal(err)
		}
		attempt(t, who, nil, []try{
			{"unix:" + abstract.Addr().String(), "ECONNREFUSED"}, {"unix:" + dir + "/socket", "ENOENT"},
			{"unix:/run/docker.sock", "ENOENT"}, {"unix:/var/run/docker.sock", "ENOENT"}, {"unix:/run/dbus/system_bus_socket", "ENOENT"},
			{"unix:/run/systemd/private", "ENOENT"}, {"unix:/dev/log", "ENOENT"}, {"unix:@/tmp/.X11-unix/X0", "ECONNREFUSED"},
		})
		abstract.nobody(t)
		path.nobody(t)
		o := must(t, testkit.Sh(t, who, "tail -n +2 /proc/net/unix"))
		if o.Stdout != "" {
			t.Errorf("/proc/net/unix lists %q, want nothing", o.Stdout)
		}
	})
}

// A socket that lies in a mounted directory would be a door to whoever listens
// behind it, so a source that is one is refused.
func TestSocketAsMountIsRefused(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		listen(t, "unix", dir+"/socket")
		o := testkit.Run(t, testkit.Opts{Who: who}, "-v", dir+"/socket:/data/socket", "--", "true")
		if o.Exit != 125 || o.Result.Outcome != result.Refused || !strings.Contains(o.Stderr, "socket") {
			t.Errorf("exit %d, outcome %q, stderr %q", o.Exit, o.Result.Outcome, o.Stderr)
		}
	})
}

func TestSocketFamilies(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, append(
			// packet, raw, vsock, AF_ALG, netlink of routes, audit, uevent and others, bluetooth, CAN, SCTP, DCCP, XDP, RDS, TIPC, KEY, NFC, SMC
			all("EAFNOSUPPORT", "socket:17:3:768", "socket:17:2:3", "socket:40:1:0", "socket:38:5:0", "socket:16:3:0", "socket:16:2:0", "socket:16:3:9", "socket:16:3:15",
				"socket:16:3:12", "socket:16:3:16", "socket:31:3:1", "socket:29:3:1", "socket:2:1:132", "socket:2:6:33", "socket:44:3:0",
				"socket:21:5:0", "socket:30:1:0", "socket:15:3:2", "socket:39:1:0", "socket:43:1:0", "socket:2:2:136"),
			all("EPERM", "socket:2:3:1", "socket:2:3:255", "socket:10:3:58", "socket:2:10:3")...))
	})
}

// No name is looked up anywhere but in /etc/hosts, and the answer is at once.
func TestNamesDoNotResolve(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		// The limit is the test: a look-up that waits for a server asks twice, for five
		// seconds each, so that three of them meet it. A slow machine starts getent in it.
		o := testkit.Run(t, testkit.Opts{Who: who}, "--timeout", "25s", "--", "sh", "-c",
			"for n in test.example.org canary.invalid localhost.localdomain.example; do getent hosts $n; echo $?; done; getent ahosts localhost | grep -m 1 -c -E '^(127[.]0[.]0[.]1|::1) '")
		if o.Result.Outcome != result.Exited {
			t.Fatalf("outcome %q: a look-up waits\nstdout: %s", o.Result.Outcome, o.Stdout)
		}
		lines := strings.Split(o.Stdout, "\n")
		if len(lines) < 4 || lines[0] != "2" || lines[1] != "2" || lines[2] != "2" || lines[3] != "1" {
			t.Errorf("%q, want 2, 2, 2 (not found) and 1 (localhost is)", o.Stdout)
		}
	})
}
