package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sandglass/pkg/result"
)

func TestEmpty(t *testing.T) {
	var l Log
	b, err := json.Marshal(l.Network())
	if want := `{"connections":[],"refused":[],"bytes_up":0,"bytes_down":0}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}

func TestCounts(t *testing.T) {
	var l Log
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 3 {
				l.Refused("b.example", 80, "no")
			}
			l.Refused("b.example", 81, "no")
			l.Refused("b.example", 80, "never")
			l.Connection(time.Time{}, "", result.Connection{Host: "a.example", Port: 443, BytesUp: 1, BytesDown: 20, Verdict: result.Closed})
		})
	}
	wg.Wait()
	n := l.Network()
	counts := map[string]int64{}
	for _, r := range n.Refused {
		counts[fmt.Sprint(r.Host, r.Port, r.Reason)] = r.Count
	}
	want := map[string]int64{"b.example80no": 30, "b.example81no": 10, "b.example80never": 10}
	if fmt.Sprint(counts) != fmt.Sprint(want) || len(n.Connections) != 10 || n.BytesUp != 10 || n.BytesDown != 200 {
		t.Errorf("%+v", n)
	}
}

func TestBounds(t *testing.T) {
	var l Log
	for i := range MaxConnections + 5 {
		l.Connection(time.Time{}, "", result.Connection{Host: "a.example", Port: uint16(i), BytesUp: 1, BytesDown: 2})
	}
	for i := range MaxRefused + 7 {
		l.Refused(fmt.Sprint(i), 0, "no")
	}
	l.Refused("0", 0, "no")
	n := l.Network()
	if len(n.Connections) != MaxConnections || n.MoreConnections != 5 || n.BytesUp != MaxConnections+5 || n.BytesDown != 2*(MaxConnections+5) {
		t.Errorf("%d connections and %d more, %d and %d bytes", len(n.Connections), n.MoreConnections, n.BytesUp, n.BytesDown)
	}
	if len(n.Refused) != MaxRefused || n.MoreRefused != 7 || n.Refused[0].Count != 2 {
		t.Errorf("%d refused and %d more, the first %d times", len(n.Refused), n.MoreRefused, n.Refused[0].Count)
	}
	if n.Connections[0].Port = 7; l.Network().Connections[0].Port != 0 {
		t.Error("a result can be changed through another one")
	}
}

// TestFlood: a list that is full of one kind still takes the others, and keeps
// what weighs most.
func TestFlood(t *testing.T) {
	var l Log
	add := func(rule string, bytes int64) {
		l.Connection(time.Time{}, rule, result.Connection{Host: rule, BytesUp: bytes})
	}
	for range 10 * MaxConnections {
		add("*.a.example", 1)
	}
	for range 200 {
		add("b.example", 0)
	}
	add("*.a.example", 1<<20)
	add("c.example", 0)
	got := map[string]int{}
	for _, c := range l.Network().Connections {
		got[fmt.Sprint(c.Host, " ", c.BytesUp)]++
	}
	want := map[string]int{"*.a.example 1": 127, "*.a.example 1048576": 1, "b.example 0": 127, "c.example 0": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) || l.net.MoreConnections != 9*MaxConnections+202 {
		t.Errorf("%v and %d more, want %v", got, l.net.MoreConnections, want)
	}

	for i := range MaxRefused {
		l.Refused(fmt.Sprint(i), 0, "name")
	}
	for range 3 {
		l.Refused("192.0.2.1", 80, "address")
	}
	l.Refused("0", 0, "name")
	l.Refused("new", 0, "name")
	n := l.Network()
	last := n.Refused[MaxRefused-1]
	if len(n.Refused) != MaxRefused || n.MoreRefused != 2 || last != (result.RefusedHost{Host: "192.0.2.1", Port: 80, Reason: "address", Count: 3}) ||
		n.Refused[0].Count != 2 || n.Refused[MaxRefused-2].Host != fmt.Sprint(MaxRefused-2) || len(l.refused) != MaxRefused {
		t.Errorf("%d refused and %d more, the first %+v, the last %+v", len(n.Refused), n.MoreRefused, n.Refused[0], last)
	}
}

func TestOrder(t *testing.T) {
	var l Log
	for _, n := range []int64{3, 1, 2, 0} {
		l.Connection(time.Unix(n, 0), "", result.Connection{DurationMS: n})
	}
	for i, c := range l.Network().Connections {
		if c.DurationMS != int64(i) {
			t.Errorf("at %d is the one that began at %d", i, c.DurationMS)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"a.example":                "a.example",
		"a\x1b[31m\nb":             `a\x1b[31m\nb`,
		"\x9b31m":                  `\x9b31m`,
		strings.Repeat("a", 256):   strings.Repeat("a", 256),
		strings.Repeat("a", 70000): strings.Repeat("a", 256) + "…",
		strings.Repeat("\x01", 99): strings.Repeat(`\x01`, 64) + "…",
		strings.Repeat("é", 200):   strings.Repeat("é", 128) + "…",
	} {
		var l Log
		l.Refused(in, 0, "no")
		l.Connection(time.Time{}, "", result.Connection{Host: in, Address: in})
		n := l.Network()
		if got := n.Refused[0].Host; got != want {
			t.Errorf("%.40q is refused as %q, want %q", in, got, want)
		}
		if c := n.Connections[0]; c.Host != want || c.Address != want {
			t.Errorf("%.40q is connected to as %q, %q, want %q", in, c.Host, c.Address, want)
		}
	}
	var l Log
	l.Connection(time.Time{}, "", result.Connection{Error: strings.Repeat("e", 600)})
	if got := l.Network().Connections[0].Error; got != strings.Repeat("e", 512)+"…" {
		t.Errorf("an error of %d bytes is kept", len(got))
	}
}
