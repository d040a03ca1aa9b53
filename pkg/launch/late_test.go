package launch

import (
	"testing"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/wire"
)

// Init's clock is two seconds behind the supervisor's, never before it, and the
// longest limit of all is one that init takes.
func TestInitLimit(t *testing.T) {
	for timeout, want := range map[time.Duration]uint64{
		time.Second: 3001, 1500*time.Millisecond + 1: 3501, policy.MaxDuration: 2592002001,
	} {
		got := initLimit(timeout)
		c := wire.Config{Limit: got}
		if _, err := wire.DecodeConfig(c.Encode()); got != want || err != nil {
			t.Errorf("%v: %d, want %d: %v", timeout, got, want, err)
		}
	}
}
