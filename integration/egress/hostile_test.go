package egress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// try is one thing in the words of testdata/try.py and the exact answer to it.
type try struct{ what, want string }

// all gives each the same answer.
func all(want string, what ...string) []try {
	var list []try
	for _, s := range what {
		list = append(list, try{s, want})
	}
	return list
}

// attempt does all of them in one sandbox.
func (w *world) attempt(t *testing.T, who testkit.Who, flags []string, tries ...try) testkit.Output {
	t.Helper()
	var args []string
	for _, x := range tries {
		args = append(args, x.what)
	}
	o := w.python(t, who, "try.py", flags, args...)
	got := lines(o.Stdout)
	if o.Exit != 0 || len(got) != len(tries) {
		t.Fatalf("exit %d, %d answers, want %d\nstdout: %s\nstderr: %s", o.Exit, len(got), len(tries), o.Stdout, o.Stderr)
	}
	for i, x := range tries {
		if answer, ok := strings.CutPrefix(got[i], x.what+" -> "); !ok || !slices.Contains(strings.Split(x.want, " or "), answer) {
			t.Errorf("%s, want %s", got[i], x.want)
		}
	}
	return o
}

// trap is a service of the host's own, which must see nobody.
func (w *world) trap(t *testing.T, address string) *peer {
	t.Helper()
	return w.serve(t, w.host, address, drain)
}

func (s *peer) nobody(t *testing.T, what string) {
	t.Helper()
	if n := len(s.accepted); n != 0 {
		t.Errorf("%s was connected to %d times", what, n)
	}
}

// TestNoOtherHost: what is not in the list is not there, by any name, address,
// port or protocol, and no packet leaves for it.
func TestNoOtherHost(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		traps := []*peer{w.trap(t, "127.0.0.1:80"), w.trap(t, "[::1]:80"), w.trap(t, ownAddr+":80")}
		o := w.attempt(t, who, allow("good.example:80", "shared.example:443"), slices.Concat(
			[]try{{"named good.example 80", "data"}},
			all("EAI_NONAME", "named other.example 80", "named other.example 443", "named filed.example 80", "named search.example 80", "named localhost.example 80"),
			// A listed name has its own port and no other, another name's not either.
			all("ECONNRESET", "named good.example 443", "named shared.example 80", "port good.example 443", "port good.example 53"),
			all("ECONNREFUSED", "named good.example 22", "port good.example 8080"),
			// Addresses, those of the listed names too.
			all("ENETUNREACH", "tcp "+good4+" 80", "tcp "+other4+" 443", "tcp "+good6+" 80", "tcp "+private4+" 80", "tcp "+metadata+" 80", "tcp "+ownAddr+" 80", "tcp "+server+" 53"),
			all("ECONNRESET", "tcp 127.0.0.1 80", "tcp ::1 80", "tcp 127.1.2.3 443", "tcp 0.0.0.0 80", "tcp 198.18.0.1 80", "tcp 198.19.255.254 443", "tcp ::ffff:127.0.0.1 80"),
			[]try{{"tcp ::ffff:" + good4 + " 80", "ENETUNREACH"}},
			// Not TCP.
			all("ENETUNREACH", "udp "+good4+" 443", "udp "+good6+" 443", "udp "+server+" 53"),
			all("ECONNREFUSED", "udpto good.example 443", "udpto good.example 80", "udp 127.0.0.1 443"),
			all("EPERM", "sock AF_INET SOCK_RAW 1", "sock AF_INET6 SOCK_RAW 58", "sock AF_INET SOCK_RAW 255"),
			all("EAFNOSUPPORT", "sock AF_PACKET SOCK_RAW 768", "sock AF_NETLINK SOCK_RAW 0", "sock AF_VSOCK SOCK_STREAM 0"),
			all("EAFNOSUPPORT", "sock AF_INET SOCK_DGRAM 1", "sock AF_INET6 SOCK_DGRAM 58"),
		)...)
		w.wire.only(t, "tcp ["+good6+"]:80") // the host prefers it, for both of the name's addresses
		if got := w.names.questions(); !slices.Equal(got, []string{"good.example", "shared.example"}) {
			t.Errorf("names asked for outside: %q", got)
		}
		if got := w.web.requests(); !slices.Equal(got, []string{"GET  /", "GET  /"}) {
			t.Errorf("requests that came: %q", got)
		}
		for i, trap := range traps {
			trap.nobody(t, []string{"127.0.0.1 of the host", "::1 of the host", "the host's own address"}[i])
		}
		if o.Result.Network.MoreRefused != 0 {
			t.Error("refusals were not listed")
		}
	})
}

// TestNoListNoNetwork: without the flag there is nothing to ask.
func TestNoListNoNetwork(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		o := w.attempt(t, who, nil, slices.Concat(
			all("EAI_NONAME or EAI_AGAIN", "named good.example 80"),
			all("ENETUNREACH", "tcp "+good4+" 80", "tcp 198.18.0.1 80"),
			all("ECONNREFUSED", "tcp 127.0.0.1 53", "udp 127.0.0.1 53"))...)
		if o.Result.Network != nil {
			t.Errorf("network: %s", network(o))
		}
		w.wire.only(t)
	})
}

// TestSourcesAndDevices: no option of a socket leads elsewhere.
func TestSourcesAndDevices(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		w.attempt(t, who, allow("v4.good.example:80", "v4.good.example:8443"),
			try{"bound 127.0.0.1 v4.good.example 80", "data"},
			try{"bound 198.18.7.7 v4.good.example 80", "data"}, // local inside
			try{"bound " + good4 + " v4.good.example 80", "EADDRNOTAVAIL"},
			try{"bound " + ownAddr + " v4.good.example 80", "EADDRNOTAVAIL"},
			try{"device lo " + good4 + " 80", "ENOPROTOOPT"},
			try{"device h0 " + good4 + " 80", "ENOPROTOOPT"},
			try{"option 1 36 1", "ENOPROTOOPT"},  // SO_MARK
			try{"option 0 19 1", "ENOPROTOOPT"},  // IP_TRANSPARENT
			try{"option 41 75 1", "ENOPROTOOPT"}, // IPV6_TRANSPARENT
			try{"mapped v4.good.example 80", "data"},
			// Not one of init's sockets is left to the program.
			try{"descriptors", "0 1 2"},
			// Nobody takes the place of the relay or the name server.
			try{"listen 127.0.0.1 8443", "EADDRINUSE"},
			try{"listen 198.18.1.0 8443", "EADDRINUSE"},
			try{"listen ::1 8443", "EADDRINUSE"},
			try{"reuse 8443", "EADDRINUSE"},
			try{"listen 0.0.0.0 53", "EACCES"},
			try{"listen 198.18.1.0 80", "EACCES"},
			try{"listen 198.18.1.0 8080", "listens"}, // its own, inside
		)
		w.wire.only(t, "tcp "+good4+":80")
	})
}

// TestPrivateAddressesAreNotDialled: where a listed name leads to is judged.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		traps := []*peer{w.trap(t, "127.0.0.1:80"), w.trap(t, "[::1]:80"), w.trap(t, ownAddr+":80")}
		names := []string{"10.example", "loop.example", "meta.example", "own.example", "ula.example", "mapped.example", "nat64.example", "trap.example"}
		var list []string
		var tries []try
		for _, n := range names {
			list = append(list, n+":80")
			tries = append(tries, try{"named " + n + " 80", "ECONNRESET"})
		}
		list = append(list, "mixed.example:80")
		tries = append(tries, try{"named mixed.example 80", "data"})
		o := w.attempt(t, who, allow(list...), tries...)
		w.wire.only(t, "tcp "+good4+":80")
		for i, trap := range traps {
			trap.nobody(t, []string{"127.0.0.1 of the host", "::1 of the host", "the host's own address"}[i])
		}
		want := []string{"mixed.example:80 " + good4 + " closed"}
		for _, n := range names {
			want = append(want, n+":80  private")
		}
		connections(t, o, want...)
	})
}

// TestWhatTheListStoppedIsTold: the program sees a reset, or no such name; who asks
// is told what it was, and what would allow it.
func TestWhatTheListStoppedIsTold(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		o := w.attempt(t, who, append(allow("good.example:80", "10.example:80"), "--explain-denials"),
			try{"named other.example 80", "EAI_NONAME"}, try{"named 10.example 80", "ECONNRESET"},
			try{"named good.example 8080", "ECONNREFUSED"}, try{"named good.example 80", "data"}, try{"udp 192.0.2.1 443", "ENETUNREACH"})
		told := lines(o.Stderr)
		for _, want := range []string{
			"hint: other.example was asked for 2 times: not in the list, --allow-host other.example would add it (port 443)",
			"hint: 10.example:80 was cut 2 times: " + private4 + ": private (RFC 1918); where you mean that address, list it beside the name: --allow-host " + private4 + ":80",
		} {
			if !slices.Contains(told, want) {
				t.Errorf("%q is missing in %q", want, told)
			}
		}
		// The C library asks for the interfaces, and by UDP for the order of a name's
		// two addresses: no attempts, which the last lines tell, or nothing.
		var hosts []string
		netlink := 0
		for _, d := range o.Result.Denied {
			switch {
			case d.Kind == "host":
				hosts = append(hosts, fmt.Sprint(d.Count, " ", d.What, " ", d.Program, d.Args, d.Errno))
			case d.What == "socket" && d.Args == "AF_NETLINK, SOCK_RAW, 0":
				netlink += int(d.Count)
			}
		}
		slices.Sort(hosts)
		if want := []string{"1 192.0.2.1:443 python3UDPENETUNREACH", "2 good.example:8080 python3"}; !slices.Equal(hosts, want) || netlink == 0 {
			t.Errorf("out of reach: %q, want %q; netlink %d", hosts, want, netlink)
		}
		if n := len(told); n != 5 || !strings.HasPrefix(told[n-2], "hint: 192.0.2.1:443 (UDP) was out of reach once (python3): ") ||
			!strings.HasPrefix(told[n-1], fmt.Sprintf("hint: socket(AF_NETLINK) was refused %d times with EAFNOSUPPORT: ", netlink)) {
			t.Errorf("told %q", told)
		}
	})
}

// TestListedPrivateAddress: what the list names as an address is meant, and for
// that port alone.
func TestListedPrivateAddress(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		o := w.attempt(t, who, allow("10.1.2.0/24:80", metadata+":80", "["+ula6+"]:80"),
			try{"tcp " + private4 + " 80", "data"}, try{"tcp " + metadata + " 80", "data"}, try{"tcp " + ula6 + " 80", "data"},
			try{"tcp " + private4 + " 443", "ECONNREFUSED"}, try{"tcp 10.1.3.3 80", "ENETUNREACH"}, try{"tcp 169.254.169.253 80", "ENETUNREACH"})
		w.wire.only(t, "tcp "+private4+":80", "tcp "+metadata+":80", "tcp ["+ula6+"]:80")
		connections(t, o, private4+":80 "+private4+" closed", metadata+":80 "+metadata+" closed", ula6+":80 "+ula6+" closed")
	})
}
