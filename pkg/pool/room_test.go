package pool

import (
	"testing"

	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// TestRoom: what this host could not hold is refused before any of it is made.
func TestRoom(t *testing.T) {
	c := Config{Spec: sandbox.Default(), Sizes: []policy.Warm{{N: 300}, {Lang: "node", N: 200}}}
	c.Spec.Limits.Memory = 32 << 20
	for _, x := range []struct {
		room
		want string
	}{
		{room{500 * 32 << 20, 500 * filesEach}, ""},
		{room{500*32<<20 - 1, 500 * filesEach}, "--warm: 500 sandboxes of 32m each are more than the 16777215999 of this host"},
		{room{500 * 32 << 20, 500*filesEach - 1}, "--warm: 500 sandboxes take up to 12000 open files, and this session may have 11999"},
	} {
		got := ""
		if err := x.holds(c); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%v: %q, want %q", x.room, got, x.want)
		}
	}
}
