package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// The internet's addresses. They look public and exist in the test alone.
const (
	good4    = "93.184.216.34"
	good6    = "2606:2800:220:1::1"
	other4   = "93.184.216.35"
	other6   = "2606:2800:220:1::2"
	dead4    = "93.184.216.36" // nobody answers, not even the kernel
	server   = "9.9.9.9"       // the name server
	ownAddr  = "93.184.216.99" // the host's own, a public one
	private4 = "10.1.2.3"
	metadata = "169.254.169.254"
	ula6     = "fd12:3456::1"
	nat64    = "64:ff9b::a01:203"
)

// world is a host and, behind its only way out, an internet. The internet has
// private addresses too: a wrong connection finds somebody there.
type world struct {
	t        *testing.T
	host     *place
	internet *place
	names    *nameServer
	ca       *authority
	wire     *wire
	web      *web
}

// hostLinks and internetLinks are commands of ip(8).
const hostLinks = `link set lo up
link add h0 type veth peer name i0 netns %d
addr add 93.184.216.99/24 dev h0 noprefixroute
addr add 2606:2800:220:ff::2/64 dev h0 nodad
link set h0 up
route add 9.9.9.1 dev h0
route add default via 9.9.9.1 dev h0 onlink
route add default via fe80::1 dev h0
`

const internetLinks = `link set lo up
addr add fe80::1/64 dev i0 nodad
addr add 9.9.9.1/32 dev i0
addr add 9.9.9.9/32 dev i0
addr add 93.184.216.34/32 dev i0
addr add 93.184.216.35/32 dev i0
addr add 10.1.2.3/32 dev i0
addr add 169.254.169.254/32 dev i0
addr add 2606:2800:220:1::1/128 dev i0 nodad
addr add 2606:2800:220:1::2/128 dev i0 nodad
addr add fd12:3456::1/128 dev i0 nodad
addr add 64:ff9b::a01:203/128 dev i0 nodad
link set i0 up
route add 93.184.216.99 dev i0
route add blackhole 93.184.216.36
route add 2606:2800:220:ff::/64 dev i0
`

func newWorld(t *testing.T) *world {
	t.Helper()
	testkit.Requires(t, "root", "ip", "ipv6", "userns")
	testkit.Binary(t) // built before anybody moves
	w := &world{t: t, ca: newAuthority(t)}
	w.internet = newPlace(t, unix.CLONE_NEWNET)
	w.host = newPlace(t, unix.CLONE_NEWNET|unix.CLONE_NEWNS)
	w.configure(w.host, fmt.Sprintf(hostLinks, w.internet.tid))
	w.configure(w.internet, internetLinks)
	w.linked()
	w.wire = w.tap()
	w.names = w.serveNames()
	w.web = w.serveWeb()
	w.hostFiles("nameserver "+server+"\nsearch search.example\noptions timeout:2 attempts:1\n",
		"127.0.0.1 localhost\n"+good4+" filed.example\n127.0.0.1 trap.example\n")
	return w
}

// configure runs ip's commands there. A kernel without veth has no such world.
func (w *world) configure(p *place, commands string) {
	w.t.Helper()
	var text []byte
	err := p.do(func() (err error) {
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(commands)
		text, err = cmd.CombinedOutput()
		return err
	})
	if err == nil {
		return
	}
	if strings.Contains(string(text), "Unknown device type") {
		testkit.Skip(w.t, "veth", "a kernel without it")
	}
	w.t.Fatalf("ip: %v\n%s", err, text)
}

// linked waits until packets go both ways. The kernel looks at a link that came up
// when it comes to it, up to a second later; until then it drops what is sent, and
// asks for a neighbour again after a second more. A name's addresses would be tried
// in another order meanwhile.
func (w *world) linked() {
	w.t.Helper()
	for _, address := range []string{good4 + ":9", "[" + good6 + "]:9"} { // where nobody listens
		testkit.Eventually(w.t, "an answer of "+address, func() bool {
			return errors.Is(w.host.do(func() error {
				_, err := net.DialTimeout("tcp", address, 5*time.Second)
				return err
			}), unix.ECONNREFUSED)
		})
	}
}

// hostFiles replaces what the host's resolver reads, on this host only.
func (w *world) hostFiles(resolv, hosts string) {
	w.t.Helper()
	dir := testkit.Dir(w.t)
	err := w.host.do(func() error {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		for name, text := range map[string]string{"resolv.conf": resolv, "hosts": hosts} {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return err
			}
			if err := unix.Mount(path, "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("/etc/%s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// each runs a test on one host, as root and as an ordinary user.
func each(t *testing.T, test func(t *testing.T, w *world, who testkit.Who)) {
	t.Helper()
	w := newWorld(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		w.enter(t)
		test(t, w, who)
	})
}

// enter makes the calling test one on the host.
func (w *world) enter(t *testing.T) {
	t.Helper()
	w.t = t
	w.host.enter(t)
}

// listen makes a listener of the internet.
func (w *world) listen(address string) net.Listener {
	w.t.Helper()
	return listenAt(w.t, w.internet, address)
}

func listenAt(t *testing.T, p *place, address string) net.Listener {
	t.Helper()
	var l net.Listener
	err := p.do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatalf("listening at %s: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
