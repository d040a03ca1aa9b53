package probes

import (
	"strings"

	"golang.org/x/sys/unix"
)

// NoName is the answer of a name server that knows no such name.
const NoName = "NXDOMAIN"

// listedHost reads what a server of the list says.
func listedHost(args []string) {
	for _, arg := range args {
		at, ok := parseAddr(arg)
		if !ok {
			continue
		}
		fd, err := dial(at)
		if !try("connect", err) {
			continue
		}
		word := make([]byte, 64)
		poll(fd, unix.POLLIN)
		n, err := unix.Read(fd, word)
		if err != nil {
			try("word", err)
		} else {
			say("word", string(word[:n]))
		}
		unix.Close(fd)
	}
}

// unlistedHosts tries what is not in the list: "connect ADDR:PORT" by TCP, "send
// ADDR:PORT" by UDP, "name NAME" at the name server inside.
func unlistedHosts(args []string) {
	for _, arg := range args {
		kind, text, _ := strings.Cut(arg, " ")
		if kind == "name" {
			say(arg, answerTo(text))
			continue
		}
		at, ok := parseAddr(text)
		if !ok {
			continue
		}
		try(arg, meet(at, kind == "send"))
	}
	say("unlisted", "over")
}

// dial connects by TCP, or says why not.
func dial(at Addr) (int, error) {
	fd, to, err := at.socket(unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, to); err == unix.EINPROGRESS {
		err = unix.ETIMEDOUT
		if poll(fd, unix.POLLOUT) {
			if code, e := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); e != nil || code == 0 {
				err = e
			} else {
				err = unix.Errno(code)
			}
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// meet sends something and waits for what comes of it. A connection that the
// kernel makes inside is nothing yet: the relay resets it.
func meet(at Addr, byUDP bool) error {
	var fd int
	var err error
	if byUDP {
		var to unix.Sockaddr
		if fd, to, err = at.socket(unix.SOCK_DGRAM); err == nil {
			err = unix.Connect(fd, to)
		}
	} else {
		fd, err = dial(at)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("x")); err != nil {
		return err
	}
	if !poll(fd, unix.POLLIN) {
		return unix.ETIMEDOUT
	}
	_, err = unix.Read(fd, make([]byte, 64))
	return err
}

// answerTo asks the name server inside, as a resolver library would.
func answerTo(name string) string {
	fd, to, err := Loopback4(53).socket(unix.SOCK_DGRAM)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Connect(fd, to)
	}
	if err == nil {
		_, err = unix.Write(fd, Query(name))
	}
	if err != nil {
		return outcome(err)
	}
	poll(fd, unix.POLLIN)
	reply := make([]byte, 512)
	n, err := unix.Read(fd, reply)
	switch {
	case err != nil:
		return outcome(err)
	case n >= 12 && reply[3]&15 == 3:
		return NoName
	}
	return Done
}
