package main

import (
	"slices"
	"testing"

	"sandglass/pkg/result"
)

func TestNetworkDenials(t *testing.T) {
	cut := func(v result.Verdict, why string) result.Connection {
		return result.Connection{Host: "api.example.org", Port: 443, Verdict: v, Error: why}
	}
	for _, c := range []struct {
		net  *result.Network
		want []string
	}{
		{nil, nil},
		{&result.Network{Connections: []result.Connection{cut(result.Closed, ""), cut(result.Reset, ""), cut(result.RunEnded, "")}}, nil},
		{&result.Network{Refused: []result.RefusedHost{
			{Host: "other.example.org", Reason: "not in the list", Count: 2},
			{Host: "a.wild.example", Reason: "too many names", Count: 1},
			{Host: "--allow-host evil.example", Reason: "not in the list", Count: 1},
			{Host: "api.example.org", Port: 8443, Reason: "port of this name is not in the list", Count: 1},
			{Host: "10.0.0.1", Port: 80, Reason: "address is not in the list", Count: 3},
			{Host: "2001:db8::1", Port: 80, Reason: "address is not in the list", Count: 1},
			{Host: "198.18.9.9", Port: 80, Reason: "address stands for no name", Count: 1},
		}}, []string{
			"other.example.org was asked for 2 times: not in the list, --allow-host other.example.org would add it (port 443)",
			"a.wild.example was asked for once: too many names",
			`"--allow-host evil.example" was asked for once: not in the list`,
			"api.example.org:8443 was refused once: port of this name is not in the list, --allow-host api.example.org:8443 would add it",
			"10.0.0.1:80 was refused 3 times: address is not in the list, --allow-host 10.0.0.1:80 would add it",
			"[2001:db8::1]:80 was refused once: address is not in the list, --allow-host '[2001:db8::1]:80' would add it",
			"198.18.9.9:80 was refused once: address stands for no name",
		}},
		{&result.Network{Connections: []result.Connection{
			cut(result.Private, "10.0.0.1: private (RFC 1918)"), cut(result.Private, "169.254.169.254: link-local"),
			cut(result.Unreachable, "connection refused"), cut(result.Private, "10.0.0.1: private (RFC 1918)"),
			cut(result.ServerName, "not TLS"), cut(result.Idle, ""), cut(result.ByteLimit, ""),
		}}, []string{
			"api.example.org:443 was cut 2 times: 10.0.0.1: private (RFC 1918); where you mean that address, list it beside the name: --allow-host 10.0.0.1:443",
			"api.example.org:443 was cut once: 169.254.169.254: link-local",
			"api.example.org:443 was cut once: the host could not be connected to: connection refused",
			"api.example.org:443 was cut once: not TLS (--tls-sni-check)",
			"api.example.org:443 was cut once: nothing passed for too long (--net-idle)",
			"api.example.org:443 was cut once: the bytes of the run are used up (--net-upload, --net-download)",
		}},
	} {
		var got []string
		for _, l := range networkDenials(c.net) {
			got = append(got, l.text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
