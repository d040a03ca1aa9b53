package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/plan"
)

// TestPlanShowsTheList: plan has the list of hosts in its one spelling, and what is
// there inside a run with it.
func TestPlanShowsTheList(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		flags := []string{"--allow-host", "API.example.org.", "--allow-host", "*.b.example:8443", "--allow-host", "10.1.0.0/16:5432", "--allow-host", "[2001:db8::1]:8443",
			"--allow-host", "api.example.org:443", "--net-rate", "1m", "--net-connections-total", "9", "--tls-sni-check", "all"}
		var e plan.Explanation
		out := testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, append(flags, "--json", "--", "true")...)
		if err := json.Unmarshal([]byte(out.Stdout), &e); err != nil {
			t.Fatalf("%v: exit %d, %s", err, out.Exit, out.Stderr)
		}
		want := &plan.Network{
			Hosts:     []string{"*.b.example:8443", "10.1.0.0/16:5432", "[2001:db8::1]:8443", "api.example.org:443"},
			Addresses: []string{"198.18.0.0/15", "fd73:616e:6467::/64", "10.1.0.0/16", "2001:db8::1/128"},
			Ports:     []uint16{53, 443, 5432, 8443},
			TLSNames:  "all",
			Limits:    map[string]string{"connections": "64 at once, 9 in all", "bytes": "64m up, 1g down", "rate": "1m a second", "idle": "5m0s"},
		}
		if !reflect.DeepEqual(e.Network, want) {
			t.Errorf("got  %+v\nwant %+v", e.Network, want)
		}
		text := testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, append(flags, "--", "true")...).Stdout
		for _, h := range want.Hosts {
			if !strings.Contains(text, "  host        "+h+"\n") {
				t.Errorf("%s is not in the text", h)
			}
		}
		run := testkit.Run(t, testkit.Opts{Who: who}, append(flags, "--", "cat", "/proc/net/tcp", "/proc/net/tcp6")...)
		if got := listening(t, run.Stdout); !slices.Equal(got, want.Ports) {
			t.Errorf("ports inside: %v, want %v", got, want.Ports)
		}
		if e = (plan.Explanation{}); json.Unmarshal([]byte(testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, "--json", "--", "true").Stdout), &e) != nil || e.Network != nil {
			t.Errorf("without a list: %+v", e.Network)
		}
	})
}

// listening are the ports of the kernel's tables that somebody listens on, sorted.
func listening(t *testing.T, tables string) (ports []uint16) {
	t.Helper()
	for line := range strings.Lines(tables) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "0A" {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			t.Fatal(fmt.Errorf("%q: %w", line, err))
		}
		ports = append(ports, uint16(port))
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
