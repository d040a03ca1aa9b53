package check

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/sandbox"
)

// envOutside makes the test binary play a probe outside of any sandbox.
const envOutside = "SANDGLASS_TEST_OUTSIDE"

func TestMain(m *testing.M) {
	sandbox.Init()
	Init()
	if os.Getenv(envOutside) != "" {
		probes.Patience = 500 // for doors of the host that never answer
		if !probes.Do(os.Args[1], os.Args[2:]) {
			os.Exit(99)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// degraded is what this caller's host may hold by less: nothing for root.
func degraded() []string {
	if os.Geteuid() == 0 {
		return nil
	}
	return []string{"memory", "cpu", "pids"}
}

// TestGolden: ids, layers and claims are an interface, see controls.golden.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	for i, c := range controls() {
		if want := fmt.Sprintf("c%02d", i+1); c.id != want {
			t.Errorf("control %d is %s, not %s", i, c.id, want)
		}
		if (c.judge == nil) == (c.whole == nil) {
			t.Errorf("%s has both or neither of judge and whole", c.id)
		}
		fmt.Fprintf(&got, "%s %s: %s\n", c.id, c.layer, c.claim)
	}
	want, err := os.ReadFile("testdata/controls.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the list is not testdata/controls.golden:\n%s", got.String())
	}
}

// TestJSON: the whole form, byte for byte.
func TestJSON(t *testing.T) {
	var got bytes.Buffer
	err := WriteJSON(&got, []Line{
		{ID: "c01", Claim: "<a>", Held: true, Seen: "x", Layer: "net"},
		{ID: "c02", Claim: "b", Held: true, Weak: true, Seen: "y", Layer: "cgroup"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "schema": 1,
  "held": true,
  "checks": [
    {
      "id": "c01",
      "claim": "<a>",
      "held": true,
      "seen": "x",
      "layer": "net"
    },
    {
      "id": "c02",
      "claim": "b",
      "held": true,
      "seen": "y",
      "layer": "cgroup",
      "weak": true
    }
  ]
}
`
	if got.String() != want {
		t.Errorf("got %s", got.String())
	}
}

func TestLineText(t *testing.T) {
	for _, c := range []struct {
		line Line
		want string
	}{
		{Line{ID: "c01", Claim: "a: b", Held: true, Seen: "s"}, "ok    c01  a: b"},
		{Line{ID: "c01", Claim: "a: b", Held: true, Weak: true, Seen: "s"}, "weak  c01  a: b: s"},
		{Line{ID: "c01", Claim: "a: b", Seen: "s t"}, "FAIL  c01  a: b: s t"},
		{Line{ID: "c01", Claim: "a", Seen: "\x1b[2J"}, `FAIL  c01  a: "\x1b[2J"`},
	} {
		if got := c.line.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestHeld(t *testing.T) {
	ok, bad := Line{Held: true}, Line{}
	for _, c := range []struct {
		lines []Line
		want  bool
	}{{nil, false}, {[]Line{ok}, true}, {[]Line{ok, bad}, false}, {[]Line{{Held: true, Weak: true}}, true}} {
		if got := Held(c.lines); got != c.want {
			t.Errorf("%+v: %v", c.lines, got)
		}
	}
}

// TestEveryControlHolds is the check itself, on this host.
func TestEveryControlHolds(t *testing.T) {
	var order []string
	lines, err := Run(context.Background(), Options{AllowDegraded: degraded()}, func(l Line) { order = append(order, l.ID) })
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, l := range lines {
		ids = append(ids, l.ID)
		if !l.Held || l.Seen == "" {
			t.Errorf("%s", l)
		}
		if l.Weak && os.Geteuid() == 0 {
			t.Errorf("weak although nothing was allowed: %s", l)
		}
	}
	if !slices.Equal(ids, order) {
		t.Errorf("called in the order %v", order)
	}
	if _, set := os.LookupEnv(secretName); set {
		t.Error("the secret is still in the environment")
	}
}

// TestNoSandboxNoCheck: what keeps sandboxes from starting is an error, not 48
// lines.
func TestNoSandboxNoCheck(t *testing.T) {
	lines, err := Run(context.Background(), Options{
		AllowDegraded: degraded(),
		mutate:        func(_ string, s *sandbox.Spec) { s.Seccomp = "no-such-profile" },
	}, nil)
	if lines != nil || err == nil || !strings.Contains(err.Error(), "no-such-profile") {
		t.Errorf("got %d lines, %v", len(lines), err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	_, err := Run(ctx, Options{AllowDegraded: degraded()}, func(Line) { calls++; cancel() })
	if err == nil || err.Error() != "the check was interrupted" || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
