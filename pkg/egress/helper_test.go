package egress

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"

	"sandglass/internal/sys"
	"sandglass/internal/testkit"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace as init makes one: loopback alone, with the
// range of names local on it.
type namespace struct{ jobs chan func() }

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	testkit.Requires(t, "root")
	n := &namespace{jobs: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = sys.LoopbackUp()
		}
		if err == nil {
			err = rangeOnLoopback()
		}
		ready <- err
		for f := range n.jobs {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	return n
}

// rangeOnLoopback gives loopback an address of 198.18.0.0/15: on a loopback
// device the kernel makes the whole network local.
func rangeOnLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, c := range []struct {
		request uint
		addr    []byte
	}{{unix.SIOCSIFADDR, []byte{198, 18, 0, 1}}, {unix.SIOCSIFNETMASK, []byte{255, 254, 0, 0}}} {
		r, err := unix.NewIfreq("lo:1")
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(c.addr); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, c.request, r); err != nil {
			return err
		}
	}
	return nil
}

func (n *namespace) close() { close(n.jobs) }

// do runs f on the namespace's thread: what f opens belongs there.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (n *namespace) dial(network, address string) (c net.Conn, err error) {
	n.do(func() { c, err = net.Dial(network, address) })
	return c, err
}

// sockets are those of init: TCP ports on every address, and the resolver's.
func (n *namespace) sockets(t *testing.T, ports ...string) Sockets {
	t.Helper()
	var s Sockets
	var err error
	n.do(func() {
		for _, p := range append(ports, "53") {
			var f *os.File
			if f, err = tcpFile("0.0.0.0:" + p); err != nil {
				return
			}
			s.Listeners = append(s.Listeners, f)
		}
		s.Packet, err = udpFile("127.0.0.1:53")
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tcpFile(address string) (*os.File, error) {
	plain := net.ListenConfig{} // one of MPTCP has not all options
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(context.Background(), "tcp4", address)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.(*net.TCPListener).File()
}

func udpFile(address string) (*os.File, error) {
	c, err := net.ListenPacket("udp4", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.(*net.UDPConn).File()
}
