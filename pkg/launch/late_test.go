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

// TestBetween: the moment that init tells is one between the release and its being told.
func TestBetween(t *testing.T) {
	first := time.Now()
	last := first.Add(time.Second)
	for at, want := range map[time.Time]time.Duration{
		time.Unix(0, first.UnixNano()+1e8): 1e8,
		time.Unix(0, first.UnixNano()-1):   0,
		time.Unix(0, last.UnixNano()+1):    time.Second,
		time.Unix(0, -1<<63):               0,
		time.Unix(0, 1<<63-1):              time.Second,
	} {
		if got := between(first, at, last).Sub(first); got != want {
			t.Errorf("%v: %v after the release, want %v", at, got, want)
		}
	}
}
