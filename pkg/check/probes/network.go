package probes

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Patience is how long, in milliseconds, a connection or an answer may take: the
// relay's on a slow host too, where each switch to it waits for a CPU.
var Patience = 5000

// Host is the name of the rule's own request: https://test.example.org.
const Host = "test.example.org"

// request does by hand what a request to https://test.example.org does: it
// asks every name server, then connects to port 443 of what came back. args are
// the doors of the host, "server ADDR:PORT" and "connect ADDR:PORT", and
// "world" for what lies beyond it.
func request(args []string) {
	var answers [][]byte
	for _, arg := range args {
		kind, text, _ := strings.Cut(arg, " ")
		if kind == "world" {
			answers = append(answers, world()...)
			continue
		}
		at, ok := parseAddr(text)
		if !ok {
			continue
		}
		if kind == "server" {
			answers = append(answers, resolve(at)...)
		} else {
			connect(at)
		}
	}
	for _, ip := range answers {
		connect(Addr{ip, 443})
	}
	say("request", "over")
}

// world asks the name servers that a resolver library would. Addresses for
// documentation stand in where none answers.
func world() [][]byte {
	answers := [][]byte{ParseIP("192.0.2.1"), ParseIP("2001:db8::1")}
	for _, server := range servers() {
		answers = append(answers, resolve(server)...)
	}
	return answers
}

// servers are the name servers that a resolver library would ask.
func servers() []Addr {
	conf, _ := os.ReadFile("/etc/resolv.conf")
	list := []Addr{{[]byte{127, 0, 0, 53}, 53}}
	for line := range bytes.Lines(conf) {
		if f := strings.Fields(string(line)); len(f) == 2 && f[0] == "nameserver" {
			if ip := ParseIP(f[1]); ip != nil {
				list = append(list, Addr{ip, 53})
			}
		}
	}
	return list
}

// resolve sends one query by UDP and reads addresses out of the answer.
func resolve(server Addr) [][]byte {
	key := "query " + server.String()
	fd, to, err := server.socket(unix.SOCK_DGRAM)
	if err != nil {
		try(key, err)
		return nil
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		try(key, err)
		return nil
	}
	if _, err := unix.Write(fd, Query(Host)); err != nil {
		try(key, err)
		return nil
	}
	poll(fd, unix.POLLIN)
	answer := make([]byte, 512)
	n, err := unix.Read(fd, answer)
	if !try(key, err) || n < 16 {
		return nil
	}
	// The last four bytes of a plain answer are its address.
	return [][]byte{answer[n-4 : n]}
}

// Query is a DNS question for the address of name.
func Query(name string) []byte {
	q := []byte{0x5a, 0x6c, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, 0, 1, 0, 1)
}

// connect makes a TCP connection and speaks the first bytes of TLS.
func connect(at Addr) {
	key := "connect " + at.String()
	fd, to, err := at.socket(unix.SOCK_STREAM)
	if err != nil {
		try(key, err)
		return
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, to)
	if err == unix.EINPROGRESS {
		if !poll(fd, unix.POLLOUT) {
			err = unix.ETIMEDOUT
		} else if code, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); code != 0 {
			err = unix.Errno(code)
		} else {
			err = nil
		}
	}
	if try(key, err) {
		unix.Write(fd, []byte("\x16\x03\x01"))
	}
}

func poll(fd int, events int16) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: events}}
	n, err := unix.Poll(p, Patience)
	return err == nil && n == 1
}

// networkView says what of networks can be seen.
func networkView([]string) {
	read("/proc/net/dev", "/proc/net/dev")
	read("/proc/net/route", "/proc/net/route")
	read("/proc/net/tcp", "/proc/net/tcp")
	read("/proc/net/unix", "/proc/net/unix")
	read("/proc/net/arp", "/proc/net/arp")
}

// abstract connects to a unix socket that has a name but no file.
func abstract(names []string) {
	for _, name := range names {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			try("socket", err)
			continue
		}
		try("connect", unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + name}))
		unix.Close(fd)
	}
}
