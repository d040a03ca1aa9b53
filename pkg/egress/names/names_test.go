package names

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
)

func TestRanges(t *testing.T) {
	if V4.String() != "198.18.0.0/15" || V6.String() != "fd73:616e:6467::/64" {
		t.Errorf("%v and %v", V4, V6)
	}
}

// TestPairs: every name has a pair of its own, the same one each time, within
// the ranges and outside of the part that stays free; then the table is full.
func TestPairs(t *testing.T) {
	table := New()
	free := netip.MustParsePrefix("198.18.0.0/24")
	seen := map[netip.Addr]bool{}
	for i := range Max {
		name := fmt.Sprintf("h%d.example", i)
		v4, v6, ok := table.For(name)
		if !ok || !V4.Contains(v4) || !V6.Contains(v6) || free.Contains(v4) || seen[v4] || seen[v6] {
			t.Fatalf("%s has %v and %v, %v", name, v4, v6, ok)
		}
		seen[v4], seen[v6] = true, true
		for _, a := range []netip.Addr{v4, v6} {
			if got, ok := table.Name(a); got != name || !ok {
				t.Fatalf("%v is of %q, %v, want %s", a, got, ok, name)
			}
		}
		again4, again6, ok := table.For(name)
		if again4 != v4 || again6 != v6 || !ok {
			t.Fatalf("%s has %v and %v the second time", name, again4, again6)
		}
	}
	if _, _, ok := table.For("one-more.example"); ok {
		t.Error("a full table has room")
	}
	if v4, _, ok := table.For("h0.example"); !ok || v4.String() != "198.18.1.1" {
		t.Errorf("the first name has %v, %v", v4, ok)
	}
	if v4, v6, ok := table.For("h254.example"); !ok || v4.String() != "198.18.2.1" || v6.String() != "fd73:616e:6467::c612:201" {
		t.Errorf("the 255th name has %v and %v, %v", v4, v6, ok)
	}
}

// TestOthers: an address that only looks like a name's is nobody's.
func TestOthers(t *testing.T) {
	table := New()
	table.For("a.example")
	table.For("b.example")
	for _, s := range []string{
		"198.18.0.1", "198.18.0.0", "198.18.1.0", "198.18.1.3", "198.18.1.255", "198.19.1.1", "127.0.1.1", "10.18.1.1",
		"fd73:616e:6467::c612:100", "fd73:616e:6467::c612:103", "fd73:616e:6467::101", "fd73:616e:6467:1::c612:101", "fd73:616e:6467::1:c612:101",
		"::ffff:198.18.1.1", "fd73:616e:6467::c612:101%lo", "::",
	} {
		if name, ok := table.Name(netip.MustParseAddr(s)); ok || name != "" {
			t.Errorf("%s is of %q", s, name)
		}
	}
	if _, ok := table.Name(netip.Addr{}); ok {
		t.Error("no address is a name's")
	}
}

func TestConcurrent(t *testing.T) {
	table := New()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("h%d.example", i)
				v4, _, ok := table.For(name)
				if got, found := table.Name(v4); !ok || !found || got != name {
					t.Errorf("%s has %v, which is of %q", name, v4, got)
				}
			}
		})
	}
	group.Wait()
	if len(table.names) != 200 {
		t.Errorf("%d names", len(table.names))
	}
}
