package v2

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"

	"golang.org/x/net/dns/dnsmessage"
)

// resolved puts a name server where systemd-resolved has its own, and the link that
// it makes of /etc/resolv.conf. It knows one name.
func resolved(t *testing.T) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.53:53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			c.WriteTo(testkit.Reply(buf[:n], func(name string) testkit.Names {
				if name == "good.example" {
					return testkit.Names{Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
				}
				return testkit.Names{Code: dnsmessage.RCodeNameError}
			}), from)
		}
	}()
	const dir = "/run/systemd/resolve"
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir, 0o755))
	must(os.WriteFile(dir+"/stub-resolv.conf", []byte("nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch lan\n"), 0o644))
	before, err := os.ReadFile("/etc/resolv.conf")
	must(err)
	must(os.Remove("/etc/resolv.conf"))
	must(os.Symlink("../run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf"))
	t.Cleanup(func() {
		os.Remove("/etc/resolv.conf")
		must(os.WriteFile("/etc/resolv.conf", before, 0o644))
	})
}

// TestHostsInUnits: a list of hosts in a scope of a user's and in units with what
// people put into them works, finds nobody where the unit has no network, or is
// refused with the setting that is in the way.
func TestHostsInUnits(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2", "systemd-run", "bash")
	needSystemd(t)
	if os.Getenv("SANDGLASS_TEST_OWN_MACHINE") == "" {
		testkit.Skip(t, "a machine of its own", "this host, whose settings stay as they are")
	}
	resolved(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go testkit.Serve(l, func(c *net.TCPConn) { io.Copy(c, c) })
	port := l.Addr().(*net.TCPAddr).Port
	flags := fmt.Sprintf("--allow-host good.example:%d --allow-host 127.0.0.1:%[1]d", port)
	talk := fmt.Sprintf("for h in good.example other.example; do (exec 3<>/dev/tcp/$h/%d && echo hi >&3 && read -r l <&3 && echo $h $l) 2>/dev/null || echo $h none; done", port)
	const reached, nobody = "good.example hi\nother.example none\n", "good.example none\nother.example none\n"
	if out, err := scope(t, flags, "bash", "-c", talk); err != nil || out != reached {
		t.Errorf("in a delegated scope: %v: %q", err, out)
	}
	for _, c := range []struct{ properties, want, refused, hint string }{
		// Its filter hides openat2, with a list or without.
		{"DynamicUser=yes", "", "the seccomp filter that this process is under hides it", "systemctl edit NAME.service   # if it is a service's filter: "},
		{"PrivateNetwork=yes", nobody, "", ""},
		{"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "",
			"route of the listed hosts: address family not supported by protocol (a list of hosts needs a socket of netlink, which the seccomp filter that this process is under refuses)",
			"systemctl edit UNIT   # RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"},
		// Root's sandboxes have groups of their own elsewhere: the supervisor alone is cut off.
		{"IPAddressDeny=any", nobody, "", ""},
		{"User=1000 IPAddressDeny=any", "", "packet inside: operation not permitted (a filter on addresses of the control group holds for the sandbox's own loopback too)", "systemctl edit UNIT   # IPAddressAllow="},
		{"User=1000 IPAddressDeny=any IPAddressAllow=localhost IPAddressAllow=198.18.0.0/15 IPAddressAllow=fd73:616e:6467::/64", reached, "", ""},
	} {
		out, err := unit(t, c.properties, append(strings.Fields(flags), "--", "bash", "-c", talk)...)
		if c.refused == "" && (err != nil || out != c.want) {
			t.Errorf("%s: %v: %q, want %q", c.properties, err, out, c.want)
		}
		if c.refused != "" && (err == nil || !strings.Contains(out, c.refused) || !strings.Contains(out, "\nhint: "+c.hint)) {
			t.Errorf("%s: %v: %q, want %q with the hint %q", c.properties, err, out, c.refused, c.hint)
		}
	}
}

// unit runs sandglass in a unit of the system's with properties.
func unit(t *testing.T, properties string, args ...string) (string, error) {
	t.Helper()
	list := []string{"--quiet", "--pipe", "--wait", "--collect", "-p", "Delegate=yes"}
	for p := range strings.SplitSeq(properties, " ") {
		if strings.Contains(p, "=") {
			list = append(list, "-p", p)
		} else {
			list[len(list)-1] += " " + p
		}
	}
	out, err := exec.Command("systemd-run", append(append(list, testkit.Binary(t), "run"), args...)...).CombinedOutput()
	return string(out), err
}
