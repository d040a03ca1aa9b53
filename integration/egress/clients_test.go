package egress

import (
	"slices"
	"strconv"
	"testing"

	"sandglass/internal/testkit"
)

var itoa = strconv.Itoa

// client is an ordinary program that fetches from a listed host without knowing
// of any sandbox.
type client struct {
	name  string
	needs []string
	hosts []string // nil: good.example
	cmd   []string
	want  string
	flags []string
}

var commands = []client{
	{name: "curl", needs: []string{"curl"}, cmd: []string{"curl", "-sS", "https://good.example/"}, want: "hello from good.example\n"},
	{name: "curl by HTTP", needs: []string{"curl"}, hosts: []string{"good.example:80"}, cmd: []string{"curl", "-sS", "http://good.example/"}, want: "hello from good.example\n"},
	{name: "curl POST", needs: []string{"curl"}, cmd: []string{"curl", "-sS", "--data", "body=1", "https://good.example/echo"}, want: "body=1"},
	{name: "curl follows", needs: []string{"curl"}, cmd: []string{"curl", "-sSL", "https://good.example/to?u=/"}, want: "hello from good.example\n"},
	{name: "curl IPv6", needs: []string{"curl"}, cmd: []string{"curl", "-6", "-sS", "https://good.example/"}, want: "hello from good.example\n"},
	{name: "wget", needs: []string{"wget"}, cmd: []string{"wget", "-q", "--ca-certificate=/ca.pem", "-O-", "https://good.example/"}, want: "hello from good.example\n"},
	{name: "busybox", needs: []string{"busybox"}, hosts: []string{"good.example:80"}, cmd: []string{"busybox", "wget", "-q", "-O-", "http://good.example/"}, want: "hello from good.example\n"},
	{name: "upper case", needs: []string{"curl"}, cmd: []string{"curl", "-sS", "-H", "Host: x", "https://GOOD.Example/"}, want: "hello from x\n"},
	{name: "dot at the end", needs: []string{"curl"}, cmd: []string{"curl", "-sS", "-H", "Host: x", "https://good.example./"}, want: "hello from x\n"},
	{name: "wildcard", needs: []string{"curl"}, hosts: []string{"*.wild.example"}, cmd: []string{"curl", "-sS", "https://a.wild.example/", "https://b.a.wild.example/"}, want: "hello from a.wild.example\nhello from b.a.wild.example\n"},
	{name: "punycode", needs: []string{"curl"}, hosts: []string{"xn--bcher-kva.example"}, cmd: []string{"curl", "-sS", "https://xn--bcher-kva.example/"}, want: "hello from xn--bcher-kva.example\n"},
	{name: "hosts file", needs: []string{"curl"}, hosts: []string{"filed.example"}, cmd: []string{"curl", "-sS", "https://filed.example/"}, want: "hello from filed.example\n"},
	{name: "address", needs: []string{"curl"}, hosts: []string{good4}, cmd: []string{"curl", "-sS", "https://" + good4 + "/"}, want: "hello from " + good4 + "\n"},
	{name: "openssl", needs: []string{"openssl"}, cmd: []string{"sh", "-c", `printf 'GET / HTTP/1.0\r\nHost: x\r\n\r\n' | openssl s_client -quiet -verify_return_error -connect good.example:443 2>/dev/null | tail -n 1`}, want: "hello from x\n"},
}

func TestCommands(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		for _, c := range commands {
			t.Run(c.name, func(t *testing.T) {
				testkit.Requires(t, c.needs...)
				w.enter(t)
				hosts := c.hosts
				if hosts == nil {
					hosts = []string{"good.example"}
				}
				o := testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(allow(hosts...), w.ca.flags(), c.flags, []string{"--"}, c.cmd)...)
				printed(t, o, c.want)
				for _, r := range o.Result.Network.Refused {
					t.Errorf("refused: %+v", r)
				}
				if n := len(o.Result.Network.Connections); n == 0 || o.Result.Network.BytesDown == 0 || o.Result.Network.BytesUp == 0 {
					t.Errorf("the result tells of no connection: %s", network(o))
				}
			})
		}
	})
}

// TestWithOtherFlags: a list goes together with what changes the filter, /proc and
// the streams.
func TestWithOtherFlags(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		for _, flags := range [][]string{
			{"--explain-denials"}, {"--seccomp", "debug"}, {"--proc", "none"}, {"--pty"}, {"--read-only", "--cap-drop", "ALL"},
			{"--tls-sni-check", "all"}, {"--net-connections", "1"}, {"--user", "1234"},
		} {
			o := w.python(t, who, "clients.py", slices.Concat(allow("good.example"), flags), "http.client")
			t.Logf("with %q", flags)
			printed(t, o, hello+hello+hello)
		}
	})
}
