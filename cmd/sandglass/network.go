package main

import (
	"fmt"
	"net/netip"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/egress/reach"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
)

// told is a line about something that was stopped, and how often it was.
type told struct {
	text  string
	count int64
}

// networkDenials is what came of a list of hosts, as far as the program saw no
// more of it than a reset or a name that is not there. A hint names what the
// program asked for, and is no advice: only a person knows what it may have.
func networkDenials(n *result.Network) []told {
	if n == nil {
		return nil
	}
	var list []told
	for _, r := range n.Refused {
		list = append(list, told{refusedHost(r), r.Count})
	}
	type kind struct {
		host, err string
		port      uint16
		verdict   result.Verdict
	}
	counts, kinds := map[kind]int64{}, []kind{}
	for _, c := range n.Connections {
		k := kind{c.Host, c.Error, c.Port, c.Verdict}
		if counts[k]++; counts[k] == 1 {
			kinds = append(kinds, k)
		}
	}
	for _, k := range kinds {
		where := at(k.host, k.port)
		if why := cutFor(k.verdict, k.err, k.port); why != "" {
			list = append(list, told{where + " was cut " + times(counts[k]) + ": " + why, counts[k]})
		}
	}
	return list
}

// refusedHost is a name that was not looked up, or an address that is not listed.
func refusedHost(r result.RefusedHost) string {
	name, isName := hosts.Canonical(r.Host)
	if r.Port == 0 {
		text := refusal.Word(r.Host) + " was asked for " + times(r.Count) + ": " + r.Reason
		if isName && r.Reason == "not in the list" {
			text += ", --allow-host " + name + " would add it (port 443)"
		}
		return text
	}
	where := at(r.Host, r.Port)
	text := where + " was refused " + times(r.Count) + ": " + r.Reason
	if _, err := netip.ParseAddr(r.Host); isName || err == nil && strings.HasPrefix(r.Reason, "address is not") {
		text += ", --allow-host " + refusal.Shell(where) + " would add it"
	}
	return text
}

// cutFor says why sandglass ended a connection of a listed host, "" where the two
// ends did.
func cutFor(v result.Verdict, err string, port uint16) string {
	switch v {
	case result.Private:
		return private(err, port)
	case result.Unreachable:
		return "the host could not be connected to: " + err
	case result.ServerName:
		return err + " (--tls-sni-check)"
	case result.Idle:
		return "nothing passed for too long (--net-idle)"
	case result.ByteLimit:
		return "the bytes of the run are used up (--net-upload, --net-download)"
	}
	return ""
}

// private names the address to list beside the name. Not the one where a cloud
// keeps the host's credentials: the name's own server may have led there.
func private(err string, port uint16) string {
	address, _, _ := strings.Cut(err, ": ")
	a, bad := netip.ParseAddr(address)
	if bad != nil || reach.Metadata(a) {
		return err
	}
	return err + "; where you mean that address, list it beside the name: --allow-host " + refusal.Shell(at(address, port))
}

// at is a host and a port as --allow-host takes them.
func at(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return refusal.Word(fmt.Sprintf("%s:%d", host, port))
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// remarkOnNetwork tells a person the first thing that the list of hosts stopped:
// the program saw a reset, or no such name, and cannot.
func remarkOnNetwork(p *policy.Parsed, n *result.Network, failed bool) {
	list := networkDenials(n)
	if !failed || len(list) == 0 || p.Spec.ExplainDenials {
		return
	}
	more := ""
	if len(list) > 1 {
		more = " (--explain-denials tells the rest)"
	}
	note("%s%s", refusal.Line(list[0].text), more)
}
